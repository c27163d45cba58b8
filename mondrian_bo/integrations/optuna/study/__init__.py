"""What a study holds, as numbers that a model can learn: trials, spaces, proposals and curves.

``study_reader`` reads finished and running trials, which ``trial_feed`` finds in the storage.
``distributions`` turns Optuna's distributions into a search space, ``learnt_conditions`` learns
its conditions, and ``trial_rows`` encodes trials. ``proposals`` and ``fixed_values`` have what a
running trial will be. ``study_curves``, ``pruned_trials`` and ``comparable_trials`` have what
trials report. ``study_memory`` keeps what was read, and ``study_checks`` refuses what is no study.
"""
