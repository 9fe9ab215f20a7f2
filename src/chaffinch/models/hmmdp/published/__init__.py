"""The published forms of HMM-DP beside ours: mean field, and sticks with atoms."""
