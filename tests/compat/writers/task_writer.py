"""Writes to a task list as Python tools do: takes flock on .lock and no other lock, and writes in place.

  python3 task_writer.py DIRECTORY PREFIX COUNT|- [PAUSE]

Creates COUNT tasks, or with `-` creates tasks until standard input ends. Each task has the next free id. The subjects
are PREFIX:0, PREFIX:1 and so on. Claims every second task with the owner PREFIX. Waits for up to PAUSE ms (default 6)
between two steps. Prints {"stored": ["ID SUBJECT OWNER", ...], "refused": []}, where OWNER is `-` for no owner.
"""

import fcntl
import json
import os
import random
import select
import sys
import time

directory, prefix, count = sys.argv[1:4]
max_pause = float(sys.argv[4]) if len(sys.argv) > 4 else 6.0


def should_stop():
    """Whether standard input has ended. Always false if COUNT is a number."""
    if count != "-":
        return False
    ready, _, _ = select.select([sys.stdin], [], [], 0)
    return bool(ready) and not os.read(0, 1)


def highest_id():
    """The highest id that a task has or had. 0 if there was no task."""
    ids = [int(name[:-5]) for name in os.listdir(directory) if name.endswith(".json") and name[:-5].isdigit()]
    try:
        with open(os.path.join(directory, ".highwatermark")) as file:
            ids.append(int(file.read().strip() or 0))
    except (FileNotFoundError, ValueError):
        pass
    return max(ids, default=0)


def create_task(subject):
    number = highest_id() + 1
    task = {"id": str(number), "subject": subject, "description": "", "status": "pending", "blocks": [], "blockedBy": []}
    with open(os.path.join(directory, f"{number}.json"), "x") as file:
        json.dump(task, file, indent=2)
    return number, task


def claim(number, task):
    """Claims a task unless it has an owner or is not pending. Returns the task as stored."""
    path = os.path.join(directory, f"{number}.json")
    with open(path) as file:
        task = json.load(file)
    if task["status"] != "pending" or "owner" in task:
        return task
    task["status"], task["owner"] = "in_progress", prefix
    with open(path, "w") as file:
        json.dump(task, file, indent=2)
    return task


def with_lock(action):
    with open(os.path.join(directory, ".lock"), "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return action()


stored = []
n = 0
while not should_stop() and (count == "-" or n < int(count)):
    number, task = with_lock(lambda: create_task(f"{prefix}:{n}"))
    if n % 2:
        time.sleep(random.random() * max_pause / 1000)
        task = with_lock(lambda: claim(number, task))
    stored.append(f"{number} {task['subject']} {task.get('owner', '-')}")
    time.sleep(random.random() * max_pause / 1000)
    n += 1
print(json.dumps({"stored": stored, "refused": []}))
