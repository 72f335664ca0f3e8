#!/bin/sh
# containerd says that it is up a moment before it answers Kubernetes, and whoever asks meanwhile hears "server is not initialized yet".
# This waits for the last thing it does before that; a containerd that never says it is left to whoever needs it.
attempt=0
until journalctl --unit containerd.service | grep --quiet "Start streaming server" || [ "$attempt" -ge 100 ]; do
  attempt=$((attempt + 1))
  sleep 0.1
done
