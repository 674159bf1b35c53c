-- Of a compaction that sorted its rows anew: the output position of every rank, and which rows other outputs have (encode_row_map in composition.py).
CREATE TABLE row_maps (
    output_fragment_id INTEGER PRIMARY KEY REFERENCES fragments (fragment_id) ON DELETE CASCADE,
    positions          BLOB    NOT NULL
) STRICT;
