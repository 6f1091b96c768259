-- Renews or gives back. ARGV: ms, what ('renew' or 'hide'), then id, token of each.
-- Answers for each: 1 done, 0 the lease is not ours any more.
local ms, what = tonumber(ARGV[1]), ARGV[2]
local done = {}
for at = 3, #ARGV, 2 do
  local id, token = ARGV[at], ARGV[at + 1]
  if redis.call('GET', lease(id)) ~= token then
    done[#done + 1] = 0
  else
    if what == 'renew' then
      hold(id, token, ms)
    elseif ms > 0 then
      -- Another token: the receipt has done its duty.
      hold(id, 'docmill:hidden', ms)
    else
      free(id, token)
      requeue(id)
    end
    done[#done + 1] = 1
  end
end
return done
