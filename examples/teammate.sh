#!/bin/sh
# A teammate that answers what it is told, with nothing but teamctl, which finds name and team in the environment.
#   teamctl spawn ann -- sh examples/teammate.sh

while teamctl wait --quiet; do # for mail; nothing is marked read by that
    mail=$(teamctl inbox --unread --mark-read)
    # A message may contain any id. answer-shutdown accepts only the id of a shutdown request from the lead.
    for id in $(printf '%s\n' "$mail" | grep -o "shutdown-[0-9]*@$TEAMD_MEMBER"); do
        teamctl answer-shutdown "$id" --approve && exit
    done
    printf 'I have read:\n%s\n' "$mail" | teamctl send team-lead - --summary "read it"
done
