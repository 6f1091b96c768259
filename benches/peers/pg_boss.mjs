// pg-boss: no-op jobs out of Postgres, fetched in batches and completed together.
// Arguments: jobs, jobs at the same time. DATABASE_URL. Prints one line of JSON.
import { PgBoss } from "pg-boss";

const [jobs, concurrency] = process.argv.slice(2).map(Number);
const boss = new PgBoss({ connectionString: process.env.DATABASE_URL, supervise: false, schedule: false });
boss.on("error", (error) => { console.error(error); process.exit(1); });
await boss.start();
const queue = `noop_${process.pid}`;
await boss.createQueue(queue);
for (let sent = 0; sent < jobs; sent += 1000) {
  const part = Array.from({ length: Math.min(1000, jobs - sent) }, (_, n) => ({ data: { n: sent + n } }));
  await boss.insert(queue, part);
}
let done = 0;
const started = process.hrtime.bigint();
const cpu = process.cpuUsage();
// The loop that its documentation shows for throughput: no polling interval between batches.
const workers = Array.from({ length: 4 }, async () => {
  while (done < jobs) {
    const batch = await boss.fetch(queue, { batchSize: concurrency });
    if (!batch?.length) { await new Promise((next) => setTimeout(next, 5)); continue; }
    await boss.complete(queue, batch.map((job) => job.id));
    done += batch.length;
  }
});
await Promise.all(workers);
const seconds = Number(process.hrtime.bigint() - started) / 1e9;
const { user, system } = process.cpuUsage(cpu);
console.log(JSON.stringify({ jobs: done, seconds, cpu_us: (user + system) / done }));
await boss.stop({ graceful: false });
process.exit(0);
