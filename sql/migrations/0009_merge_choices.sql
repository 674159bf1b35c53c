-- What somebody chose for a row that two branches had changed, for the next MERGE BRANCH of one into the other: it counts where the row has still
-- the two versions that the choice was made for (`ours`, `theirs`: a digest of its values and columns; NULL: the row was deleted).
CREATE TABLE merge_choices (
    ours_branch_id   INTEGER NOT NULL REFERENCES branches (branch_id) ON DELETE CASCADE,
    theirs_branch_id INTEGER NOT NULL REFERENCES branches (branch_id) ON DELETE CASCADE,
    row_id           INTEGER NOT NULL,
    ours             TEXT    CHECK (length(ours) = 64),
    theirs           TEXT    CHECK (length(theirs) = 64),
    resolution       TEXT    NOT NULL CHECK (resolution IN ('ours', 'theirs')),
    PRIMARY KEY (ours_branch_id, theirs_branch_id, row_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX merge_choices_by_theirs ON merge_choices (theirs_branch_id);
