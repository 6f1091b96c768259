-- Items of others. ARGV[1] says what:
-- 'leave', then id, token of each: back to where they were, at the front, to be passed over by us as
-- long as their data is the same; answers 1 done, 0 the lease is not ours any more.
-- 'count': how many of them wait.
if ARGV[1] == 'count' then
  local waiting = 0
  for _, id in ipairs(redis.call('HKEYS', FOREIGN)) do
    if redis.call('EXISTS', item(id)) == 0 then
      redis.call('HDEL', FOREIGN, id)
    elseif not is_held(id) then
      waiting = waiting + 1
    end
  end
  return waiting
end

local done = {}
for at = 2, #ARGV, 2 do
  local id, token = ARGV[at], ARGV[at + 1]
  if redis.call('GET', lease(id)) ~= token then
    done[#done + 1] = 0
  else
    free(id, token)
    local held = redis.call('LREM', PROCESSING, 0, id)
    if held > 0 and redis.call('EXISTS', item(id)) == 1 then
      redis.call('RPUSH', QUEUE, id)
      redis.call('HSET', FOREIGN, id, sign_of(id))
      -- Looked at anew from time to time: nothing is remembered of what went long ago.
      if redis.call('TTL', FOREIGN) < 0 then redis.call('EXPIRE', FOREIGN, 3600) end
    end
    forget(id)
    done[#done + 1] = 1
  end
end
return done
