// A scripted model. It carries out the steps in the last user message that has any. It speaks the interfaces of OpenAI
// (responses and chat completions) and of Gemini. Each line of these forms is a step:
//
//     DO: shell COMMAND     calls the program's own tool for commands
//     DO: call TOOL JSON    calls the tool TOOL, or else the tool whose name ends with TOOL
//     DO: sleep SECONDS     waits before it answers
//     SAY: TEXT             ends the turn with this text
//
// The conversation contains the results of the tool calls. Their number says which steps the model has carried out, so
// it stores nothing between two requests.
//
// Usage: node scripted_model.js LOG
// Prints the port. Appends each request to LOG as a line of JSON.

'use strict';
const fs = require('node:fs');
const http = require('node:http');

const log = process.argv[2];
const writeLog = (entry) => fs.appendFileSync(log, JSON.stringify({ at: performance.timeOrigin + performance.now(), ...entry }) + '\n');

// ---- Requests

const contentText = (content) =>
  typeof content === 'string' ? content : (content || []).map((part) => part.text || '').join('\n');

/**
 * Functions that parse a request, by interface. They return {messages, tools}: the conversation as
 * [{from: 'user'|'model'|'result', text}], and the tools as [{name, namespace, properties}].
 */
const readers = {
  responses: (body) => ({
    messages: (Array.isArray(body.input) ? body.input : [{ role: 'user', content: body.input }]).flatMap((item) => {
      if (/_output$/.test(item.type || '')) return [{ from: 'result', text: '' }];
      if (item.role === 'user' || item.role === 'developer') return [{ from: 'user', text: contentText(item.content) }];
      return [{ from: 'model', text: '' }];
    }),
    tools: (body.tools || []).flatMap((tool) =>
      tool.type === 'namespace'
        ? (tool.tools || []).map((inner) => ({ ...inner, namespace: tool.name, properties: inner.parameters?.properties }))
        : [{ ...tool, properties: tool.parameters?.properties }]),
  }),
  chat: (body) => ({
    messages: body.messages.map((message) => ({
      from: message.role === 'tool' ? 'result' : message.role === 'user' ? 'user' : 'model',
      text: contentText(message.content),
    })),
    tools: (body.tools || []).map((tool) => ({ ...tool.function, properties: tool.function?.parameters?.properties })),
  }),
  gemini: (body) => ({
    messages: body.contents.flatMap((content) =>
      content.parts.map((part) => ({
        from: part.functionResponse ? 'result' : content.role === 'model' ? 'model' : 'user',
        text: part.text || '',
      }))),
    tools: (body.tools || []).flatMap((tool) => tool.functionDeclarations || []).map((tool) => ({
      ...tool,
      properties: (tool.parametersJsonSchema || tool.parameters)?.properties,
    })),
  }),
};

// ---- Steps

const SHELLS = ['exec_command', 'shell_command', 'shell', 'run_shell_command', 'bash', 'container.exec'];

const steps = (text) => [...shutdownSteps(text), ...lineSteps(text)];

/** A shutdown request is approved with the command that the request names. */
const shutdownSteps = (text) =>
  (/shutdown-\d+@[\w-]+/.exec(text) || []).map((id) => ({ kind: 'DO', text: `shell teamctl answer-shutdown ${id} --approve` }));

const lineSteps = (text) =>
  text.split('\n').flatMap((line) => {
    const step = /^\s*"?(DO|SAY): ?(.*)$/.exec(line.replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&quot;/g, '"').replace(/&amp;/g, '&'));
    return step ? [{ kind: step[1], text: step[2].replace(/"$/, '').trim() }] : [];
  });

/** A call of the program's tool for commands. `null` if it has none. */
function shellCall(tools, text) {
  const tool = SHELLS.map((name) => tools.find((tool) => tool.name === name)).find(Boolean);
  if (!tool) return null;
  const properties = tool.properties || {};
  const args = {};
  if (properties.cmd) args.cmd = text;
  else args.command = properties.command?.type === 'array' ? ['/bin/sh', '-c', text] : text;
  if (properties.description) args.description = 'as asked';
  if (properties.is_background) args.is_background = false;
  if (properties.workdir && tool.name === 'shell') args.workdir = process.cwd();
  return { name: tool.name, args };
}

function toolCall(tools, text) {
  const [name, ...rest] = text.split(' ');
  const tool = tools.find((tool) => tool.name === name) || tools.find((tool) => tool.name.endsWith(name));
  return tool && { name: tool.name, namespace: tool.namespace, args: JSON.parse(rest.join(' ') || '{}') };
}

/** The answer to a request without tools: the first text, after the first sleep. */
const textOnly = (steps) => ({
  sleep: Number(steps.find((step) => step.text.startsWith('sleep '))?.text.slice(6) || 0) * 1000,
  text: steps.find((step) => step.kind === 'SAY')?.text || 'done',
});

/** The next answer in a conversation: {call, sleep} or {text, sleep}, with the delay `sleep` in ms. */
function nextAnswer({ messages, tools }) {
  const start = messages.findLastIndex((message) => message.from === 'user' && steps(message.text).length > 0);
  if (start < 0) return { text: 'nothing was asked' };
  // The request is for a title, or the program has no tools.
  if (tools.length === 0) return textOnly(steps(messages[start].text));
  let results = messages.slice(start + 1).filter((message) => message.from === 'result').length;
  let sleep = 0;
  for (const step of steps(messages[start].text)) {
    const [verb, ...rest] = step.text.split(' ');
    if (step.kind === 'SAY') return { sleep, text: step.text };
    if (verb === 'sleep') {
      sleep = results > 0 ? 0 : Number(rest[0]) * 1000;
      continue;
    }
    if (results-- > 0) continue;
    const call = verb === 'shell' ? shellCall(tools, rest.join(' ')) : toolCall(tools, rest.join(' '));
    return call ? { sleep, call } : { text: `there is no tool for ${step.text}: ${tools.map((tool) => tool.name)}` };
  }
  return { sleep, text: 'done' };
}

// ---- Responses

let ids = 0;
const id = (kind) => `${kind}_${process.pid}_${++ids}`;

/** Functions that write an answer, by interface. */
const writers = {
  responses(step, send) {
    const response = { id: id('resp'), object: 'response', model: 'mock', status: 'in_progress', output: [] };
    const event = (type, fields) => send(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`);
    event('response.created', { response });
    const item = step.call
      ? { type: 'function_call', id: id('fc'), call_id: id('call'), name: step.call.name, arguments: JSON.stringify(step.call.args), status: 'completed', ...(step.call.namespace && { namespace: step.call.namespace }) }
      : { type: 'message', id: id('msg'), role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: step.text, annotations: [] }] };
    event('response.output_item.added', { output_index: 0, item: step.call ? item : { ...item, content: [] } });
    if (!step.call) {
      event('response.output_text.delta', { item_id: item.id, output_index: 0, content_index: 0, delta: step.text });
    }
    event('response.output_item.done', { output_index: 0, item });
    const usage = { input_tokens: 10, input_tokens_details: { cached_tokens: 0 }, output_tokens: 5, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 15 };
    event('response.completed', { response: { ...response, status: 'completed', output: [item], usage } });
  },
  chat(step, send, body) {
    const base = { id: id('chatcmpl'), created: 1700000000, model: body.model };
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    const tool = step.call && [{ index: 0, id: id('call'), type: 'function', function: { name: step.call.name, arguments: JSON.stringify(step.call.args) } }];
    const message = step.call ? { role: 'assistant', content: null, tool_calls: tool } : { role: 'assistant', content: step.text };
    const finish_reason = step.call ? 'tool_calls' : 'stop';
    if (!body.stream) return send(JSON.stringify({ ...base, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage }));
    const chunk = (delta, finish_reason) =>
      send(`data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }], ...(finish_reason && { usage }) })}\n\n`);
    chunk(message, null);
    chunk({}, finish_reason);
    send('data: [DONE]\n\n');
  },
  gemini(step, send, body, streamed) {
    const part = step.call ? { functionCall: { id: id('call'), name: step.call.name, args: step.call.args } } : { text: step.text };
    const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 };
    const answer = JSON.stringify({ candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }], usageMetadata, modelVersion: 'mock' });
    send(streamed ? `data: ${answer}\n\n` : answer);
  },
};

// ---- The server

/** The interface that a path belongs to. `null` for other paths. */
function interfaceOf(path) {
  if (/\/responses$/.test(path)) return 'responses';
  if (/\/chat\/completions$/.test(path)) return 'chat';
  if (/:(streamG|g)enerateContent$/.test(path)) return 'gemini';
  return null;
}

/** Answers a request for the list of models or the number of tokens. Other paths do not exist. */
function answerOther(path, response) {
  writeLog({ path });
  if (/\/models$/.test(path)) return response.end(JSON.stringify({ object: 'list', data: [{ id: 'mock', object: 'model' }], models: [] }));
  if (/:countTokens$/.test(path)) return response.end(JSON.stringify({ totalTokens: 10 }));
  response.statusCode = 404;
  response.end(JSON.stringify({ error: { message: `there is no ${path}`, code: 404 } }));
}

const server = http.createServer((request, response) => {
  const chunks = [];
  const at = performance.timeOrigin + performance.now();
  const { pathname } = new URL(request.url, 'http://localhost');
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const kind = interfaceOf(pathname);
    response.setHeader('content-type', 'application/json');
    if (!kind || request.method !== 'POST') return answerOther(pathname, response);
    const body = JSON.parse(Buffer.concat(chunks).toString());
    if (process.env.MODEL_DUMP) fs.writeFileSync(`${process.env.MODEL_DUMP}/${Math.round(at)}.json`, JSON.stringify(body, null, 1));
    const conversation = readers[kind](body);
    const step = nextAnswer(conversation);
    const last = conversation.messages.findLast((message) => message.from === 'user');
    writeLog({ at, kind, path: pathname, tools: conversation.tools.length, step, last: (last?.text || '').slice(-2000) });
    const streamed = body.stream || /stream/.test(pathname);
    if (streamed) response.setHeader('content-type', 'text/event-stream');
    setTimeout(() => {
      writers[kind](step, (text) => response.write(text), body, streamed);
      response.end();
    }, step.sleep || 0);
  });
});

server.listen(Number(process.env.MODEL_PORT || 0), '127.0.0.1', () => console.log(server.address().port));
