// sqs-consumer: no-op messages out of SQS, whole batches received and deleted. No database.
// Arguments: jobs, jobs at the same time. SQS_ENDPOINT, SQS_URL. Prints one line of JSON.
import { SQSClient, SendMessageBatchCommand } from "@aws-sdk/client-sqs";
import { Consumer } from "sqs-consumer";

const [jobs, concurrency] = process.argv.slice(2).map(Number);
const queueUrl = process.env.SQS_URL;
const sqs = new SQSClient({
  endpoint: process.env.SQS_ENDPOINT, region: "us-east-1",
  credentials: { accessKeyId: "test", secretAccessKey: "test" },
});
for (let sent = 0; sent < jobs; sent += 10) {
  const Entries = Array.from({ length: Math.min(10, jobs - sent) }, (_, n) => ({
    Id: String(n), MessageBody: String(sent + n),
  }));
  await sqs.send(new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries }));
}
let done = 0;
let deleted = 0;
const finished = Promise.withResolvers();
const started = process.hrtime.bigint();
const cpu = process.cpuUsage();
// One consumer has one poll out; as many as it takes for so many messages at the same time.
const consumers = Array.from({ length: Math.ceil(concurrency / 10) }, () => {
  const consumer = Consumer.create({
    queueUrl, sqs, batchSize: 10, waitTimeSeconds: 1, pollingWaitTimeMs: 0,
    handleMessageBatch: async (messages) => { done += messages.length; return messages; },
  });
  // Told once the batch is deleted.
  consumer.on("response_processed", () => { deleted = done; if (deleted >= jobs) finished.resolve(); });
  consumer.on("error", (error) => { console.error(error); process.exit(1); });
  consumer.start();
  return consumer;
});
await finished.promise;
const seconds = Number(process.hrtime.bigint() - started) / 1e9;
const { user, system } = process.cpuUsage(cpu);
console.log(JSON.stringify({ jobs: done, seconds, cpu_us: (user + system) / done }));
consumers.forEach((consumer) => consumer.stop({ abort: true }));
process.exit(0);
