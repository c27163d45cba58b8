"""What ``MondrianSampler`` needs for a suggestion: the told study, and values outside of its model.

``told_study`` is the optimizer of a study. ``first_values`` draws parameters that no trial has had,
and ``valid_points`` asks a user's function which points are valid. ``earlier_studies`` and
``study_fidelity`` are the options `warm_start` and `fidelity`.
"""
