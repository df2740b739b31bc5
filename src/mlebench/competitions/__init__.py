"""One folder per competition, named by Kaggle's id. Folders outside the package join through the search path."""
