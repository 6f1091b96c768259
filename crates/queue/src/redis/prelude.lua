-- What every script begins with. KEYS[1] is the queue's prefix; all other keys are made of it, so
-- that a prefix with a hash tag keeps a whole queue in one slot.
local prefix = KEYS[1]
local QUEUE, PROCESSING = prefix .. ':queue', prefix .. ':processing'
-- When a lease or hiding of ours ends (milliseconds), by id; of sends with a delay, also in LATE.
local DUE, LATE = prefix .. ':docmill:due', prefix .. ':docmill:late'
-- Since when an id has been seen in no list and without a lease, or in processing without one.
local SUSPECT = prefix .. ':docmill:suspect'
-- Given up: id, and until when it is hidden from readers.
local DEAD = prefix .. ':docmill:dead'
local NOTES_KEPT = 35 * 24 * 3600

local function item(id) return prefix .. ':item:' .. id end
local function lease(id) return prefix .. ':lease:' .. id end
-- The same for clients of 0.1: they look at no other key.
local function old_lease(id) return prefix .. ':leased_by_session:' .. id end
-- What others' programs are to work on, which we leave in the queue: id, and a sign of its data.
local FOREIGN = prefix .. ':docmill:foreign'
-- How many of them at the front of the queue were looked past in vain.
local SKIPPED = prefix .. ':docmill:skipped'
-- Ours about a message: n (receives), first, sent, tenant, traceparent, origin, token (of the last lease).
local function note(id) return prefix .. ':docmill:note:' .. id end
local function grave(id) return prefix .. ':docmill:dead:' .. id end

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Whether anybody has it, of whatever version; who; an end of both leases, but of none of others.
local function is_held(id) return redis.call('EXISTS', lease(id), old_lease(id)) > 0 end
local function holder(id)
  return redis.call('GET', lease(id)) or redis.call('GET', old_lease(id))
end
local function free(id, token)
  redis.call('DEL', lease(id))
  if redis.call('GET', old_lease(id)) == token then redis.call('DEL', old_lease(id)) end
end

-- Tells other data under the same id, without reading all of it.
local function sign_of(id)
  return redis.sha1hex(redis.call('STRLEN', item(id)) .. ' '
    .. redis.call('GETRANGE', item(id), 0, 1023) .. redis.call('GETRANGE', item(id), -1024, -1))
end

local function forget(id)
  redis.call('DEL', note(id))
  redis.call('ZREM', DUE, id)
  redis.call('ZREM', LATE, id)
  redis.call('ZREM', SUSPECT, id)
end

-- Hides a message from everybody: other clients see a lease like their own.
local function hold(id, token, ms)
  redis.call('SET', lease(id), token, 'PX', ms)
  redis.call('SET', old_lease(id), token, 'PX', ms)
  redis.call('ZADD', DUE, now + ms, id)
end

-- Puts what nobody holds any more at the end of the line; says whether it did.
local function requeue(id)
  if is_held(id) then
    local left = math.max(redis.call('PTTL', lease(id)), redis.call('PTTL', old_lease(id)))
    redis.call('ZADD', DUE, now + math.max(left, 1), id)
    return 0
  end
  redis.call('ZREM', DUE, id)
  redis.call('ZREM', LATE, id)
  redis.call('ZREM', SUSPECT, id)
  local held = redis.call('LREM', PROCESSING, 0, id)
  if redis.call('EXISTS', item(id)) == 0 then
    redis.call('DEL', note(id))
    return 0
  end
  if held == 0 then return 0 end
  redis.call('LPUSH', QUEUE, id)
  return 1
end
