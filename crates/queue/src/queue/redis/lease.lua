-- Leases items. ARGV: how many, for how many ms, dead after so many receives (0: never), token.
-- Answers: ms until something of ours becomes due (-1: nothing), then of each item
-- id, data, receives, sent, first received, tenant, traceparent.
local most, ms, limit, token = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

for _, id in ipairs(redis.call('ZRANGEBYSCORE', DUE, '-inf', now, 'LIMIT', 0, 200)) do
  requeue(id)
end

local function bury(id, data)
  local about = redis.call('HMGET', note(id), 'sent', 'first', 'n', 'tenant', 'traceparent')
  redis.call('HSET', grave(id), 'data', data, 'sent', about[1] or '', 'first', about[2] or '',
    'n', (tonumber(about[3]) or 1) - 1, 'tenant', about[4] or '', 'traceparent', about[5] or '')
  redis.call('ZADD', DEAD, 0, id)
  redis.call('LREM', PROCESSING, 0, id)
  redis.call('DEL', item(id))
  forget(id)
end

local answer, taken = { -1 }, 0
-- Ghosts and second entries are passed over, but not without end in one go.
for _ = 1, most + 200 do
  if taken >= most then break end
  local id = redis.call('RPOP', QUEUE)
  if not id then break end
  local data = redis.call('GET', item(id))
  if not data then
    redis.call('LREM', PROCESSING, 0, id)
    forget(id)
  elseif redis.call('EXISTS', lease(id)) == 0 then
    local receives = redis.call('HINCRBY', note(id), 'n', 1)
    if limit > 0 and receives > limit then
      bury(id, data)
    else
      redis.call('LREM', PROCESSING, 0, id)
      redis.call('LPUSH', PROCESSING, id)
      hold(id, token, ms)
      redis.call('ZREM', SUSPECT, id)
      redis.call('HSETNX', note(id), 'first', now)
      redis.call('HSET', note(id), 'token', token)
      redis.call('EXPIRE', note(id), NOTES_KEPT)
      local about = redis.call('HMGET', note(id), 'sent', 'first', 'tenant', 'traceparent')
      taken = taken + 1
      answer[#answer + 1] = { id, data, receives, about[1] or '', about[2] or '', about[3] or '',
        about[4] or '' }
    end
  end
end
local next_due = redis.call('ZRANGE', DUE, 0, 0, 'WITHSCORES')
if next_due[2] then answer[1] = math.max(tonumber(next_due[2]) - now, 0) end
return answer
