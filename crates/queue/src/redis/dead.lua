-- Dead letters. ARGV[1] says what:
-- 'take', how many, hidden for ms, token: answers as lease.lua, without the first number.
-- 'forget' or 'release', then id, token of each: answers 1 done, 2 gone already, 0 not ours.
if ARGV[1] == 'take' then
  local letters = {}
  local ids = redis.call('ZRANGEBYSCORE', DEAD, '-inf', now, 'LIMIT', 0, tonumber(ARGV[2]))
  for _, id in ipairs(ids) do
    redis.call('ZADD', DEAD, now + tonumber(ARGV[3]), id)
    redis.call('HSET', grave(id), 'token', ARGV[4])
    local about = redis.call('HMGET', grave(id), 'data', 'n', 'sent', 'first', 'tenant',
      'traceparent', 'origin')
    letters[#letters + 1] = { id, about[1] or '', tonumber(about[2]) or 0, about[3] or '',
      about[4] or '', about[5] or '', about[6] or '', about[7] or '' }
  end
  return letters
end

local done = {}
for at = 2, #ARGV, 2 do
  local id = ARGV[at]
  local token = redis.call('HGET', grave(id), 'token')
  if redis.call('EXISTS', grave(id)) == 0 then
    done[#done + 1] = 2
  elseif token ~= ARGV[at + 1] then
    done[#done + 1] = 0
  else
    if ARGV[1] == 'forget' then
      redis.call('DEL', grave(id))
      redis.call('ZREM', DEAD, id)
    else
      redis.call('ZADD', DEAD, 0, id)
    end
    done[#done + 1] = 1
  end
end
return done
