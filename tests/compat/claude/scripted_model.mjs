// The scripted model for Claude Code in `make test-claude`. It answers POST /v1/messages on 127.0.0.1. The last user
// message with lines of these forms says what it does. Each line is a step:
//
//   CALL TOOL {"some": "input"}   calls a tool with this input
//   SEND NAME TEXT                calls SendMessage to NAME, with the input that this version's tool takes
//   CLAIM ID                      claims a task, with the client's own TaskUpdate if the session has this tool
//   COMPLETE ID                   completes a task in the same way
//   PLAN TEXT                     writes TEXT to the plan's file, then leaves plan mode
//   RECALL NAME TEXT              sends NAME "I remember TEXT" if an earlier message contains TEXT, else "I do not"
//   SAY TEXT                      answers with TEXT
//
// Each answer of the model carries out one step. After the last step it answers "done.". A text ends the turn.
// For an assigned task, the lines of its description are the steps, and a further step completes the task. For a
// shutdown request, the only step is its approval.
//
// Usage: node scripted_model.mjs LOG
// Prints the port. Appends a line of JSON to LOG for each request that offers tools: the time, the model and the
// answer.

import { appendFileSync } from "node:fs";
import { createServer } from "node:http";

const log = process.argv[2];

// The delay before each streamed answer, in ms. At the start of a turn the client writes its own files. If the model
// calls a tool at that moment, version 2.1.330 gives up its permission request with "mailbox write failed". A real
// model does not answer that fast.
const ANSWER_DELAY = 500;

const VERB = /^(CALL|SEND|CLAIM|COMPLETE|PLAN|RECALL|SAY) (.*)$/;

const texts = (message) =>
  typeof message.content === "string"
    ? [message.content]
    : message.content.filter((block) => block.type === "text").map((block) => block.text);

// Decodes the entities of a message that is inside an XML element.
const decodeEntities = (text) =>
  text.replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

const lines = (message) =>
  message.role === "user" ? texts(message).flatMap((text) => decodeEntities(text).split("\n")) : [];

// Claude Code returns the feedback on a rejected plan inside other text.
const FEEDBACK = /(?:feedback\W{1,6}|\[Plan Rejected\] )(PLAN) ([^"\n]*)/i;

const messageSteps = (message) =>
  lines(message).map((line) => VERB.exec(line.trim()) ?? FEEDBACK.exec(line)).filter(Boolean);

const shutdownRequest = (message) =>
  lines(message).map((line) => /"requestId":\s*"(shutdown-[^"]*)"/.exec(line)?.[1]).findLast(Boolean);

// An assignment is JSON inside other text. Its steps are those of the task's description and a command that completes
// the task. The model does not call TaskUpdate, because version 2.1.330 disables this tool for teammates.
const ASSIGNED = /"taskId":\s*"(\d+)"(?:[^}]*?)"description":\s*("(?:[^"\\]|\\.)*")/g;

const assignmentSteps = (message) =>
  lines(message).flatMap((line) =>
    [...line.matchAll(ASSIGNED)].flatMap(([, id, description]) => [
      ...JSON.parse(description).split("\n").map((step) => VERB.exec(step.trim())).filter(Boolean),
      ["", "CALL", `Bash ${JSON.stringify(teamctl("done", id))}`],
    ]));

const teamctl = (verb, id) => ({ command: `teamctl task ${verb} ${id}`, description: `${verb} task ${id}` });

// The steps of the last message that has any, and how many of them the model has carried out.
function currentSteps(messages) {
  for (let at = messages.length - 1; at >= 0; at -= 1) {
    const request = shutdownRequest(messages[at]);
    const steps = request ? [["", "APPROVE", request]] : [...messageSteps(messages[at]), ...assignmentSteps(messages[at])];
    if (steps.length > 0) {
      const answered = messages.slice(at).filter((message) => message.role === "assistant").length;
      const file = planFile(messages.slice(0, at + 1));
      return { steps: steps.flatMap((step) => expandPlan(step, file)), answered };
    }
  }
  return { steps: [], answered: 0 };
}

// Replaces the step PLAN: WRITE writes the plan's file, LEAVE requests the approval. Without the path of the file, a
// first LEAVE makes the client name it.
function expandPlan([, verb, rest], file) {
  if (verb !== "PLAN") return [{ verb, rest }];
  const steps = [{ verb: "WRITE", rest }, { verb: "LEAVE", rest }];
  return file ? steps : [{ verb: "LEAVE", rest }, ...steps];
}

const planFile = (messages) => /[^\s`"'\\]*\/plans\/[^\s`"'\\]*\.md/.exec(JSON.stringify(messages))?.[0];

const tool = (name, input) => ({ name, input });

// Old versions of SendMessage take {type, recipient, content}. New versions of the client take {to, message}, and do
// not list the tool at first.
const hasNewSendMessage = (tools) => tools.SendMessage?.input_schema?.properties?.recipient === undefined;

function send(tools, to, text) {
  return hasNewSendMessage(tools)
    ? tool("SendMessage", { to, summary: text.slice(0, 30), message: text })
    : tool("SendMessage", { type: "message", recipient: to, summary: text.slice(0, 30), content: text });
}

function approve(tools, request) {
  const yes = { type: "shutdown_response", request_id: request, approve: true };
  return hasNewSendMessage(tools) ? tool("SendMessage", { to: "team-lead", message: yes }) : tool("SendMessage", yes);
}

const changeTask = (tools, verb, input) =>
  tools.TaskUpdate ? tool("TaskUpdate", input) : tool("Bash", teamctl(verb, input.taskId));

// The message with the step RECALL contains the text once, so a second occurrence is from an earlier message.
const recall = (messages, text) =>
  JSON.stringify(messages).split(text).length > 2 ? `I remember ${text}` : "I do not";

// Carries out a step. Returns a tool call, or the text of an answer.
function execute(body, { verb, rest }) {
  const tools = Object.fromEntries((body.tools ?? []).map((entry) => [entry.name, entry]));
  const [first, ...others] = rest.split(" ");
  const after = others.join(" ");
  switch (verb) {
    case "CALL": return tool(first, JSON.parse(after));
    case "SEND": return send(tools, first, after);
    case "RECALL": return send(tools, first, recall(body.messages, after));
    case "CLAIM": return changeTask(tools, "claim", { taskId: rest, status: "in_progress", owner: "ann" });
    case "COMPLETE": return changeTask(tools, "done", { taskId: rest, status: "completed" });
    case "APPROVE": return approve(tools, rest);
    case "WRITE": return tool("Write", { file_path: planFile(body.messages) ?? "/no/plan/file", content: `${rest}\n` });
    case "LEAVE": return tool("ExitPlanMode", {});
    default: return rest;
  }
}

function answer(body) {
  // A request without tools asks for a title or a summary.
  if (!body.tools?.length) return "a title";
  const { steps, answered } = currentSteps(body.messages);
  return answered < steps.length ? execute(body, steps[answered]) : "done.";
}

let count = 0;

function message(model, answer) {
  count += 1;
  const isCall = typeof answer !== "string";
  const content = isCall
    ? [{ type: "tool_use", id: `toolu_${String(count).padStart(12, "0")}`, name: answer.name, input: answer.input }]
    : [{ type: "text", text: answer }];
  return {
    id: `msg_${count}`, type: "message", role: "assistant", model, content,
    stop_reason: isCall ? "tool_use" : "end_turn", stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 10, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 },
  };
}

// The events that stream a message.
function events(whole) {
  const [block] = whole.content;
  const isCall = block.type === "tool_use";
  const start = isCall ? { ...block, input: {} } : { type: "text", text: "" };
  const delta = isCall
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

function writeLog(entry) {
  if (log) appendFileSync(log, `${JSON.stringify(entry)}\n`);
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
  if (body.tools?.length) writeLog({ at: new Date().toISOString(), model: body.model, doing });
  const whole = message(body.model, doing);
  if (!body.stream) return json(whole);
  setTimeout(() => stream(response, whole), ANSWER_DELAY);
}

const server = createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    try {
      reply(request, response, Buffer.concat(parts).toString());
    } catch (error) {
      writeLog({ error: String(error) });
      response.writeHead(500, { "content-type": "application/json" });
      response.end(JSON.stringify({ type: "error", error: { type: "api_error", message: String(error) } }));
    }
  });
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));
