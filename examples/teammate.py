"""A teammate by the files alone, as docs/protocol.md has them: teamctl spawn ann -- python3 examples/teammate.py"""
import datetime, json, os, pathlib, time
me, inboxes = os.environ["TEAMD_MEMBER"], pathlib.Path(os.path.expandvars("$TEAMD_ROOT/teams/$TEAMD_TEAM/inboxes"))
def change(name, edit):  # under the lock and in one step; again while that is held or an old program is amid a write
    path, beside = inboxes / f"{name}.json", inboxes / f"{name}.json.tmp.{os.getpid():08x}"
    while True:
        try:
            os.mkdir(f"{path}.lock")
            try:
                inbox = json.loads(path.read_bytes()) if path.exists() else []
                if done := edit(inbox): beside.write_text(json.dumps(inbox, indent=2)); beside.replace(path)
                return done
            finally: os.rmdir(f"{path}.lock")
        except (FileExistsError, json.JSONDecodeError): time.sleep(0.05)
def asked(message):  # the id of the lead's request to end, where the message is one
    try: said = dict(json.loads(message["text"]))
    except (KeyError, TypeError, ValueError, RecursionError): return None
    return message.get("from") == "team-lead" and said.get("type") == "shutdown_request" and said.get("requestId")
def take(inbox):  # what is due first, marked read: a request to end, what the lead says, what others say
    unread = [message for message in inbox if isinstance(message, dict) and not message.get("read")]
    due = sorted(unread, key=lambda message: (not asked(message), message.get("from") != "team-lead"))
    return due and (due[0].update(read=True) or due[0])
while (message := change(me, take)) or os.read(int(os.environ["TEAMD_WAKE_FD"]), 4096):  # nothing is due: sleep
    if not message: continue
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")[:23] + "Z"
    yes = {"type": "shutdown_approved", "requestId": asked(message), "from": me, "timestamp": now}
    text = json.dumps(yes) if asked(message) else f"I have read: {message.get('text')}"
    change("team-lead", lambda inbox: inbox.append({"from": me, "text": text, "timestamp": now, "read": False}) or True)
    if asked(message): break
