-- Adds the children of one ingestion. $1: its id; $2: the token of its claim, or NULL of one that has
-- ended; $3: a JSON array of the children. `done`: they are there, those of an earlier end included;
-- `stood`: the claim is not lost, its row was locked.
WITH parent AS MATERIALIZED (
    SELECT i.id, i.document_id, i.root_id, i.tenant, i.priority
    FROM ingestion i
    WHERE i.id = $1 AND (i.claim_token = $2 OR ($2 IS NULL AND i.status <> 'in-progress'))
    FOR NO KEY UPDATE OF i SKIP LOCKED
), given AS MATERIALIZED (
    SELECT c.*, p.id AS parent, COALESCE(p.root_id, p.id) AS root, d.id AS parent_document,
        COALESCE(d.root_id, d.id) AS root_document, d.depth + 1 AS depth, d.tags,
        COALESCE(d.tenant, p.tenant) AS tenant, p.priority
    FROM parent p JOIN document d ON d.id = p.document_id
    CROSS JOIN jsonb_to_recordset($3::jsonb) AS c (
        document uuid, ingestion uuid, position int, name text, file_path text, sha256 text,
        size bigint, kind text, pages jsonb)
    WHERE NOT EXISTS (
        SELECT 1 FROM ingestion o WHERE o.parent_id = p.id AND o.position = c.position)
), documents AS (
    INSERT INTO document (id, file_path, original_name, sha256, size_bytes, tenant, tags, parent_id,
        root_id, position, depth, first_page, last_page)
    SELECT document, file_path, name, sha256, size, tenant, tags, parent_document, root_document,
        position, depth, (pages->>'first')::int, (pages->>'last')::int
    FROM given ORDER BY position
), ingestions AS (
    -- Due without a message until one was sent: maintenance sends what is left so.
    INSERT INTO ingestion (id, document_id, kind, tenant, priority, parent_id, root_id, position,
        parked_until)
    SELECT ingestion, document, kind, tenant, priority, parent, root, position, docmill_now()
    FROM given ORDER BY position
), counted AS (
    UPDATE ingestion i SET children = COALESCE(i.children, 0) + (SELECT count(*)::int FROM given)
    FROM parent p WHERE i.id = p.id
    RETURNING i.id
)
SELECT EXISTS (SELECT 1 FROM counted) AS "done!",
    EXISTS (SELECT 1 FROM ingestion i WHERE i.id = $1
        AND (i.claim_token = $2 OR $2 IS NULL)) AS "stood!"
