-- Of a compaction that sorted its rows anew: the output position of every rank (composition.py), as little-endian 32-bit numbers, compressed by zlib.
CREATE TABLE row_maps (
    output_fragment_id INTEGER PRIMARY KEY REFERENCES fragments (fragment_id) ON DELETE CASCADE,
    positions          BLOB    NOT NULL
) STRICT;
