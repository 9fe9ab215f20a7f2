"""Descriptions of a class HMM's states: what they show, which parts of spans they form, and their roles."""
