"""Records: JSON lines, BSON documents, TFRecords; and JSON that is one document."""
