"""What the planted set of the qrels line is made of: facts, pages, pools, the workbook and the duplicate files."""
