"""Tables and figures as the paper prints them."""
