"""The published forms of HMM-DP, to compare with ours: mean field, and sticks with atoms."""
