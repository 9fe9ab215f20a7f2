"""The style sheet of reports: Okabe-Ito colours, light and dark, readable when enlarged or on narrow screens."""

from __future__ import annotations

CSS = """
:root { color-scheme: light dark; --ink: #1d2127; --soft: #59616c; --line: #d5d9df; --page: #fff; --band: #f5f6f8;
  --blue: #0072b2; --blue-rgb: 0 114 178; --red: #d55e00; --red-rgb: 213 94 0; --range: #56b4e9; --warn: #fdf3d7; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ec; --soft: #a4acb8; --line: #3a4049; --page: #16191d;
  --band: #1f2328; --blue: #56b4e9; --blue-rgb: 86 180 233; --red: #e69f00; --red-rgb: 230 159 0; --range: #0072b2;
  --warn: #3d3314; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 74rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--line); }
p, li { max-width: 46rem; margin: .4rem 0; }
p, small, dt, figcaption { color: var(--soft); }
.warn { background: var(--warn); color: var(--ink); border-left: .3rem solid #e69f00; padding: .6rem .9rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .75rem; margin: 0 0 1rem; }
.facts div { background: var(--band); border-radius: .4rem; padding: .6rem .8rem; }
dt { font-size: .85rem; }
dd { margin: 0; font-size: 1.4rem; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .5rem; border-bottom: 1px solid var(--line); vertical-align: top;
  white-space: nowrap; }
thead th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
th[scope=row], thead th:first-child { text-align: left; font-weight: 600; }
.total th, .total td { background: var(--band); }
td b { font-weight: 600; }
td small { font-size: .85em; }
svg { display: block; overflow: visible; }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
.bar { width: 7.5rem; height: 1rem; margin-left: auto; }
.axis, .grid { stroke: var(--line); stroke-width: 1; }
.range { stroke: var(--range); stroke-width: 6; }
.dot { fill: var(--blue); stroke: var(--page); stroke-width: 1; }
.curve { fill: none; stroke: var(--blue); stroke-width: 2; }
.thin { fill: none; stroke: var(--blue); stroke-width: 1; }
.ideal { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 4 4; }
.figures { display: flex; flex-wrap: wrap; gap: 2rem; }
figure { margin: .5rem 0; flex: 0 1 22rem; min-width: 0; }
.plot { width: 100%; height: auto; }
figcaption { font-size: .9rem; padding-left: 2.75rem; }
.matrix td { text-align: center; padding: .3rem .5rem; min-width: 2.75rem; border: 1px solid var(--line); }
.matrix thead th + th { writing-mode: vertical-rl; transform: rotate(180deg);
  text-align: left; padding: .5rem .2rem; max-height: 16rem; }
.same { background: rgb(var(--blue-rgb) / calc(var(--v) * .55)); }
.other { background: rgb(var(--red-rgb) / calc(var(--v) * .8)); }
.mistakes th, .mistakes td { text-align: left; }
.mistakes td:last-child { white-space: normal; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; display: inline-block; min-width: 18rem; max-width: 40rem; }
mark { background: none; color: inherit; }
mark.g { text-decoration: underline 2px var(--red); text-underline-offset: .2em; }
mark.p { background: rgb(var(--blue-rgb) / .25); }
@media print { main { max-width: none; padding: 0; } .scroll { overflow: visible; } }
"""
