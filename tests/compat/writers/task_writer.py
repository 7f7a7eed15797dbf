"""A writer of a task list as tools in Python are: flock on .lock, and no other lock.

  python3 task_writer.py DIRECTORY PREFIX COUNT|- [PAUSE]

Makes COUNT tasks, or (-) until its standard input ends, PREFIX:0 and so on, at most PAUSE ms (6) apart, each with the
next free id; takes every other one for itself, and writes in place. Prints {"stored": ["ID SUBJECT STATUS", ...],
"refused": []}.
"""

import fcntl
import json
import os
import random
import select
import sys
import time

directory, prefix, count = sys.argv[1:4]
longest = float(sys.argv[4]) if len(sys.argv) > 4 else 6.0


def told():
    if count != "-":
        return False
    ready, _, _ = select.select([sys.stdin], [], [], 0)
    return bool(ready) and not os.read(0, 1)


def taken():
    ids = [int(name[:-5]) for name in os.listdir(directory) if name.endswith(".json") and name[:-5].isdigit()]
    try:
        with open(os.path.join(directory, ".highwatermark")) as mark:
            ids.append(int(mark.read().strip() or 0))
    except (FileNotFoundError, ValueError):
        pass
    return max(ids, default=0)


def make(subject):
    number = taken() + 1
    task = {"id": str(number), "subject": subject, "description": "", "status": "pending", "blocks": [], "blockedBy": []}
    with open(os.path.join(directory, f"{number}.json"), "x") as file:
        json.dump(task, file, indent=2)
    return number, task


def take(number, task):
    path = os.path.join(directory, f"{number}.json")
    with open(path) as file:
        task = json.load(file)
    if task["status"] != "pending" or "owner" in task:
        return task
    task["status"], task["owner"] = "in_progress", prefix
    with open(path, "w") as file:
        json.dump(task, file, indent=2)
    return task


def locked(act):
    with open(os.path.join(directory, ".lock"), "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return act()


stored = []
n = 0
while not told() and (count == "-" or n < int(count)):
    number, task = locked(lambda: make(f"{prefix}:{n}"))
    if n % 2:
        time.sleep(random.random() * longest / 1000)
        task = locked(lambda: take(number, task))
    stored.append(f"{number} {task['subject']} {task.get('owner', '-')}")
    time.sleep(random.random() * longest / 1000)
    n += 1
print(json.dumps({"stored": stored, "refused": []}))
