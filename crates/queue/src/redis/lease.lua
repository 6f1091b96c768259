-- Leases items. ARGV: how many, for how many ms, dead after so many receives (0: never), token.
-- Answers: ms until something of ours becomes due (-1: nothing), how many items of others were
-- passed over, then of each item
-- id, data, receives, sent, first received, tenant, traceparent, origin.
-- Items of others that one run looks past, and how many it reads of the queue at a time.
local MOST_PASSED, PART = 1000, 200
local most, ms, limit, token = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

for _, id in ipairs(redis.call('ZRANGEBYSCORE', DUE, '-inf', now, 'LIMIT', 0, 200)) do
  requeue(id)
end

local function bury(id, data)
  local about = redis.call('HMGET', note(id), 'sent', 'first', 'n', 'tenant', 'traceparent',
    'origin')
  redis.call('HSET', grave(id), 'data', data, 'sent', about[1] or '', 'first', about[2] or '',
    'n', (tonumber(about[3]) or 1) - 1, 'tenant', about[4] or '', 'traceparent', about[5] or '',
    'origin', about[6] or '')
  redis.call('ZADD', DEAD, 0, id)
  redis.call('LREM', PROCESSING, 0, id)
  redis.call('DEL', item(id))
  forget(id)
end

local answer, taken = { -1, 0 }, 0
local is_shared = redis.call('EXISTS', FOREIGN) == 1

-- The part of the queue that is looked at, front last, and the next place in it. A run that has looked
-- past as many as it may notes where the next one goes on; at the end they begin at the front again.
local part, place = {}, 0
local skipped = is_shared and tonumber(redis.call('GET', SKIPPED) or '0') or 0

-- The next id that is not left to others, out of the queue; those stay where they are.
local function next_id()
  if not is_shared then return redis.call('RPOP', QUEUE) end
  while answer[2] < MOST_PASSED do
    if place == 0 then
      local from = skipped + answer[2]
      part = redis.call('LRANGE', QUEUE, -from - PART, -1 - from)
      place = #part
      if place == 0 then
        redis.call('DEL', SKIPPED)
        answer[2] = from
        return false
      end
    end
    local id = part[place]
    place = place - 1
    local sign = redis.call('HGET', FOREIGN, id)
    if not sign or sign ~= sign_of(id) then
      redis.call('HDEL', FOREIGN, id)
      redis.call('LREM', QUEUE, -1, id)
      return id
    end
    answer[2] = answer[2] + 1
  end
  redis.call('SET', SKIPPED, skipped + answer[2], 'EX', 60)
  return false
end

-- Ghosts and second entries are passed over, but not without end in one go.
for _ = 1, most + 200 do
  if taken >= most then break end
  local id = next_id()
  if not id then break end
  local data = redis.call('GET', item(id))
  if not data then
    redis.call('LREM', PROCESSING, 0, id)
    forget(id)
  elseif not is_held(id) then
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
      local about = redis.call('HMGET', note(id), 'sent', 'first', 'tenant', 'traceparent',
        'origin')
      taken = taken + 1
      answer[#answer + 1] = { id, data, receives, about[1] or '', about[2] or '', about[3] or '',
        about[4] or '', about[5] or '' }
    end
  end
end
local next_due = redis.call('ZRANGE', DUE, 0, 0, 'WITHSCORES')
if next_due[2] then answer[1] = math.max(tonumber(next_due[2]) - now, 0) end
return answer
