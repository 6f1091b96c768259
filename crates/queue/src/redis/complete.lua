-- Removes items for good. ARGV: id, token of each.
-- Answers for each: 1 removed by this call, 2 gone already, 0 somebody else has it.
local done = {}
for at = 1, #ARGV, 2 do
  local id, token = ARGV[at], ARGV[at + 1]
  local holds = holder(id)
  -- A lease that ran out while nobody took the item again is as good as held.
  local ours = redis.call('GET', lease(id)) == token
    or (not holds and redis.call('HGET', note(id), 'token') == token)
  if ours then
    local removed = redis.call('DEL', item(id))
    redis.call('LREM', PROCESSING, 0, id)
    if not holds then redis.call('LREM', QUEUE, 0, id) end
    redis.call('DEL', lease(id), old_lease(id))
    forget(id)
    done[#done + 1] = removed == 1 and 1 or 2
  elseif redis.call('EXISTS', item(id)) == 0 then
    done[#done + 1] = 2
  else
    done[#done + 1] = 0
  end
end
return done
