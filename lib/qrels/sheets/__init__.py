"""What a workbook holds, read as a stream: the container, the sheets' XML, their tables and cells."""
