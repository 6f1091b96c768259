-- Adds items. ARGV: id, data, delay in ms, tenant, traceparent, origin; again for each.
-- Answers for each: 1 added, 0 there was an item with this id.
local added = {}
for at = 1, #ARGV, 6 do
  local id, delay = ARGV[at], tonumber(ARGV[at + 2])
  if redis.call('SET', item(id), ARGV[at + 1], 'NX') then
    redis.call('HSET', note(id), 'sent', now, 'tenant', ARGV[at + 3], 'traceparent', ARGV[at + 4],
      'origin', ARGV[at + 5])
    redis.call('EXPIRE', note(id), NOTES_KEPT)
    if delay > 0 then
      redis.call('LPUSH', PROCESSING, id)
      hold(id, 'docmill:delayed', delay)
      redis.call('ZADD', LATE, now + delay, id)
    else
      redis.call('LPUSH', QUEUE, id)
    end
    added[#added + 1] = 1
  else
    added[#added + 1] = 0
  end
end
return added
