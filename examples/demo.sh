#!/bin/sh
# What exists today, on the invented notes beside this file; everything is written to demo-out/.
set -eu
here=$(dirname "$0")
out=${1:-demo-out}
rm -rf "$out" && mkdir "$out"
step() { printf '\n== %s\n' "$1"; shift; printf '$ chaffinch %s\n\n' "$*"; chaffinch "$@"; }

step "Is everything there?" doctor
step "Notes of invented patients" synth notes -o "$out/notes" --to txt --patients 20 --quiet
step "The same notes without identifiers, and a summary" \
  deid "$out/notes" -o "$out/clean" --group-by '^(p\d+)-' --html "$out/summary.html"
step "How much could still leak? Draw notes to read" \
  deid sample "$out/clean" -o "$out/sample.json" --notes 60
chaffinch synth notes -o "$out/labelled.jsonl" --patients 20 --quiet
python "$here/reader.py" "$out/labelled.jsonl" "$out/clean.private/documents.jsonl" "$out/sample.csv" > "$out/read.csv"
step "What a reader found who knows the labels of the invented notes" \
  deid estimate "$out/sample.json" "$out/read.csv" --recall 1

step "Annotated notes (brat) to one JSONL file; nothing is lost" convert "$here/notes" -o "$out/notes.jsonl" --group-by '^(\d+)-'
step "The same notes as i2b2 2014 XML" convert "$out/notes.jsonl" -o "$out/i2b2" --to i2b2
step "Train a tagger on five patients, judge it on the sixth" \
  train "$out/notes.jsonl" -o "$out/notes.cfm" --dev 0.2
step "Tag plain text with it" tag "$out/notes.cfm" "$out/notes.jsonl" -o "$out/tagged.jsonl" --confidence
step "Parts of speech and phrases, with the packaged model" tag genia "$out/notes.jsonl" -o "$out/chunks.jsonl"
step "How good is a model's output, and how much would leak?" \
  evaluate "$here/notes" "$here/model.jsonl" --scheme strict --scheme binary --html "$out/report.html"
step "Is it better than a handful of patterns?" compare "$here/notes" "$here/model.jsonl" "$here/patterns.jsonl"
printf '\nOpen %s/summary.html and %s/report.html in a browser. All notes are invented.\n' "$out" "$out"
