"""Archives: zip as a tree, tar and 7z unpacked, each member checked first; and archives of ours, written."""
