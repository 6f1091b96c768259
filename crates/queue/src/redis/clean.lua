-- Puts back what nobody holds. ARGV: grace in ms, 'light' or 'deep', then ids.
-- An id without a lease may be in the middle of another client's lease or add, which take two
-- steps: it is put back only when it is seen so for longer than the grace. Answers how many were.
local grace, deep = tonumber(ARGV[1]), ARGV[2] == 'deep'
local cleaned = 0

-- Suspicions that nobody came back to say nothing about the next time.
redis.call('ZREMRANGEBYSCORE', SUSPECT, '-inf', now - math.max(grace * 10, 600000))

local function is_settled(id)
  local since = redis.call('ZSCORE', SUSPECT, id)
  if grace == 0 or (since and now - tonumber(since) >= grace) then return true end
  if not since then redis.call('ZADD', SUSPECT, now, id) end
  return false
end

for at = 3, #ARGV do
  local id = ARGV[at]
  local due = redis.call('ZSCORE', DUE, id)
  if is_held(id) then
    redis.call('ZREM', SUSPECT, id)
  elseif redis.call('EXISTS', item(id)) == 0 then
    redis.call('LREM', PROCESSING, 0, id)
    forget(id)
  elseif due and tonumber(due) <= now then
    -- Ours, and over for certain.
    cleaned = cleaned + requeue(id)
  elseif deep and redis.call('LPOS', QUEUE, id) then
    redis.call('ZREM', SUSPECT, id)
  elseif is_settled(id) then
    local held = redis.call('LREM', PROCESSING, 0, id)
    redis.call('ZREM', SUSPECT, id)
    redis.call('ZREM', DUE, id)
    if held > 0 or deep then
      redis.call('LPUSH', QUEUE, id)
      cleaned = cleaned + 1
    end
  end
end
return cleaned
