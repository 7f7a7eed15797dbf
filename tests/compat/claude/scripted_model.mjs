// The scripted model behind Claude Code in `make test-claude`: POST /v1/messages on 127.0.0.1, nothing else.
// What it does is said by the last user message that has lines of these forms, one answer for each line:
//
//   CALL TOOL {"some": "input"}   a tool call with that input
//   SEND NAME TEXT                SendMessage to NAME, in the form that this client's tool takes
//   PLAN TEXT                     write TEXT to the plan's file, then leave plan mode
//   RECALL NAME TEXT              SendMessage to NAME: "I remember TEXT" if an earlier message held it, else "I do not"
//   SAY TEXT                      words
//
// A task that is assigned is done as its description says, and then completed. A shutdown request is approved, whatever
// else is asked. After the last line it says "done." and the turn ends.
//
// usage: node scripted_model.mjs LOG    prints the port; a line in LOG for each request: what it was asked, what it did.

import { appendFileSync } from "node:fs";
import { createServer } from "node:http";

const log = process.argv[2];

// ms. At the beginning of a turn the client writes files of its own, and one that is asked for a tool in that very
// moment (2.1.330) gives up its permission request: "mailbox write failed". No model answers that fast.
const THINKING = 500;

const VERB = /^(CALL|SEND|PLAN|RECALL|SAY) (.*)$/;

const texts = (message) =>
  typeof message.content === "string"
    ? [message.content]
    : message.content.filter((block) => block.type === "text").map((block) => block.text);

// Entities of a message that came inside an element.
const plain = (text) =>
  text.replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

const lines = (message) =>
  message.role === "user" ? texts(message).flatMap((text) => plain(text).split("\n")) : [];

// A rejected plan comes back with its feedback inside other text.
const FEEDBACK = /(?:feedback\W{1,6}|\[Plan Rejected\] )(PLAN) ([^"\n]*)/i;

const asked = (message) =>
  lines(message).map((line) => VERB.exec(line.trim()) ?? FEEDBACK.exec(line)).filter(Boolean);

const shutdown = (message) =>
  lines(message).map((line) => /"requestId":\s*"(shutdown-[^"]*)"/.exec(line)?.[1]).findLast(Boolean);

// What an assignment says, which comes as JSON inside other text: the lines of its description, then that it is done. By
// the command, since the newest client has its own TaskUpdate disabled as a teammate (2.1.330).
const ASSIGNED = /"taskId":\s*"(\d+)"(?:[^}]*?)"description":\s*("(?:[^"\\]|\\.)*")/g;

const assigned = (message) =>
  lines(message).flatMap((line) =>
    [...line.matchAll(ASSIGNED)].flatMap(([, id, description]) => [
      ...JSON.parse(description).split("\n").map((step) => VERB.exec(step.trim())).filter(Boolean),
      ["", "CALL", `Bash ${JSON.stringify({ command: `teamctl task done ${id}`, description: "it is done" })}`],
    ]));

// The steps of the last message that has any, and how many of them have been answered.
function place(messages) {
  for (let at = messages.length - 1; at >= 0; at -= 1) {
    const request = shutdown(messages[at]);
    const steps = request ? [["", "APPROVE", request]] : [...asked(messages[at]), ...assigned(messages[at])];
    if (steps.length > 0) {
      const answered = messages.slice(at).filter((message) => message.role === "assistant").length;
      const file = planFile(messages.slice(0, at + 1));
      return { steps: steps.flatMap((step) => spread(step, file)), answered };
    }
  }
  return { steps: [], answered: 0 };
}

// A plan is written first, then asked for approval. Where the plan's file is, is told at the first asking.
function spread([, verb, rest], file) {
  if (verb !== "PLAN") return [{ verb, rest }];
  const steps = [{ verb: "WRITE", rest }, { verb: "LEAVE", rest }];
  return file ? steps : [{ verb: "LEAVE", rest }, ...steps];
}

const planFile = (messages) => /[^\s`"'\\]*\/plans\/[^\s`"'\\]*\.md/.exec(JSON.stringify(messages))?.[0];

const tool = (name, input) => ({ name, input });

// The first versions take {type, recipient, content}; the last ones do not even list the tool at first.
const later = (tools) => tools.SendMessage?.input_schema?.properties?.recipient === undefined;

function send(tools, to, text) {
  return later(tools)
    ? tool("SendMessage", { to, summary: text.slice(0, 30), message: text })
    : tool("SendMessage", { type: "message", recipient: to, summary: text.slice(0, 30), content: text });
}

function approve(tools, request) {
  const yes = { type: "shutdown_response", request_id: request, approve: true };
  return later(tools) ? tool("SendMessage", { to: "team-lead", message: yes }) : tool("SendMessage", yes);
}

// The message that asks holds it too.
const recalls = (messages, text) =>
  JSON.stringify(messages).split(text).length > 2 ? `I remember ${text}` : "I do not";

function act(body, { verb, rest }) {
  const tools = Object.fromEntries((body.tools ?? []).map((known) => [known.name, known]));
  const [first, ...words] = rest.split(" ");
  const after = words.join(" ");
  switch (verb) {
    case "CALL": return tool(first, JSON.parse(after));
    case "SEND": return send(tools, first, after);
    case "RECALL": return send(tools, first, recalls(body.messages, after));
    case "APPROVE": return approve(tools, rest);
    case "WRITE": return tool("Write", { file_path: planFile(body.messages) ?? "/no/plan/file", content: `${rest}\n` });
    case "LEAVE": return tool("ExitPlanMode", {});
    default: return rest;
  }
}

function answer(body) {
  // Titles and the like are asked for without tools.
  if (!body.tools?.length) return "a title";
  const { steps, answered } = place(body.messages);
  return answered < steps.length ? act(body, steps[answered]) : "done.";
}

let count = 0;

function message(model, doing) {
  count += 1;
  const calls = typeof doing !== "string";
  const content = calls
    ? [{ type: "tool_use", id: `toolu_${String(count).padStart(12, "0")}`, name: doing.name, input: doing.input }]
    : [{ type: "text", text: doing }];
  return {
    id: `msg_${count}`, type: "message", role: "assistant", model, content,
    stop_reason: calls ? "tool_use" : "end_turn", stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 10, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 },
  };
}

function events(whole) {
  const [block] = whole.content;
  const called = block.type === "tool_use";
  const start = called ? { ...block, input: {} } : { type: "text", text: "" };
  const delta = called
    ? { type: "input_json_delta", partial_json: JSON.stringify(block.input) }
    : { type: "text_delta", text: block.text };
  return [
    { type: "message_start", message: { ...whole, content: [], stop_reason: null } },
    { type: "content_block_start", index: 0, content_block: start },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: whole.stop_reason, stop_sequence: null }, usage: whole.usage },
    { type: "message_stop" },
  ];
}

function note(what) {
  if (log) appendFileSync(log, `${JSON.stringify(what)}\n`);
}

function stream(response, whole) {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events(whole)) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
}

function reply(request, response, text) {
  const path = request.url.split("?")[0];
  const json = (value) => response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
  if (request.method !== "POST") return json({});
  if (path.endsWith("/count_tokens")) return json({ input_tokens: 10 });
  if (!path.endsWith("/v1/messages")) return json({});
  const body = JSON.parse(text);
  const doing = answer(body);
  if (body.tools?.length) note({ at: new Date().toISOString(), model: body.model, doing });
  const whole = message(body.model, doing);
  if (!body.stream) return json(whole);
  setTimeout(() => stream(response, whole), THINKING);
}

const server = createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    try {
      reply(request, response, Buffer.concat(parts).toString());
    } catch (error) {
      note({ error: String(error) });
      response.writeHead(500, { "content-type": "application/json" });
      response.end(JSON.stringify({ type: "error", error: { type: "api_error", message: String(error) } }));
    }
  });
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));
