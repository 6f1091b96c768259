// graphile-worker: no-op jobs out of Postgres, in one process, with the settings of its own benchmark:
// its local queue and batched completions.
// Arguments: jobs, jobs at the same time. DATABASE_URL. Prints one line of JSON.
import { Logger, makeWorkerUtils, run } from "graphile-worker";

const [jobs, concurrency] = process.argv.slice(2).map(Number);
const connectionString = process.env.DATABASE_URL;
const logger = new Logger(() => () => {});
const utils = await makeWorkerUtils({ connectionString, logger });
await utils.migrate();
for (let sent = 0; sent < jobs; sent += 1000) {
  const part = Array.from({ length: Math.min(1000, jobs - sent) }, (_, n) => ({
    identifier: "noop", payload: { n: sent + n },
  }));
  await utils.addJobs(part);
}
let done = 0;
const finished = Promise.withResolvers();
const started = process.hrtime.bigint();
const cpu = process.cpuUsage();
const runner = await run({
  logger,
  noHandleSignals: true,
  taskList: { noop: async () => { if (++done === jobs) finished.resolve(); } },
  preset: {
    worker: {
      connectionString,
      concurrentJobs: concurrency,
      maxPoolSize: 10,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
  },
});
await finished.promise;
// What is completed is written when it stops.
await runner.stop();
const seconds = Number(process.hrtime.bigint() - started) / 1e9;
const { user, system } = process.cpuUsage(cpu);
console.log(JSON.stringify({ jobs: done, seconds, cpu_us: (user + system) / done }));
await utils.release();
process.exit(0);
