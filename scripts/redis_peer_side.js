// The published Node client of redis-work-queue, told what to do line by line (redis_peers.py):
// arguments: folder of its node_modules, port; a line of JSON in, a line of JSON out.
'use strict';
const path = require('path');
const readline = require('readline');
const [folder, port] = process.argv.slice(2);
const package_ = path.resolve(folder, 'node_modules/@mevitae/redis-work-queue');
const {Item, KeyPrefix, WorkQueue} = require(path.join(package_, 'dist/WorkQueue.js'));
const ioredis = require(require.resolve('ioredis', {paths: [package_]}));
const Redis = ioredis.default || ioredis;

const db = new Redis(Number(port), '127.0.0.1');
const queue = new WorkQueue(new KeyPrefix('shared'));
const leased = new Map();

async function follow(ask) {
  switch (ask.do) {
    case 'add':
      await queue.addItem(db, new Item(Buffer.from(ask.data, 'base64'), ask.id));
      return null;
    case 'lease': {
      const item = await queue.lease(db, ask.seconds, false);
      if (item === null) return null;
      leased.set(item.id, item);
      return {id: item.id, data: Buffer.from(item.data).toString('base64')};
    }
    case 'complete':
      return queue.complete(db, leased.get(ask.id));
    case 'clean':
      await queue.lightClean(db);
      return null;
    case 'counts':
      return [await queue.queueLen(db), await queue.processing(db)];
  }
  throw new Error(ask.do);
}

(async () => {
  for await (const line of readline.createInterface({input: process.stdin})) {
    console.log(JSON.stringify((await follow(JSON.parse(line))) ?? null));
  }
  db.disconnect();
})();
