"""Which training samples make a prediction: their weights, their targets, the prior's weight.

A Mondrian forest, AMF and the Mondrian kernel predict one patient of the diabetes data.
"""

from __future__ import annotations

import numpy as np
from _figures import arguments
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import minmax_scale

from mondrian_bo.surrogates import AMFRegressor, MondrianForestRegressor, MondrianKernelRegressor

MODELS = {
    "Mondrian forest": lambda: MondrianForestRegressor(20, random_state=0),
    "AMF": lambda: AMFRegressor(20, stacking=False, random_state=0),  # weights are positive
    "Mondrian kernel": lambda: MondrianKernelRegressor(20, 1.0, random_state=0),
}


def main():
    options = arguments(__file__, __doc__, picture=False, patient=1, largest=5)
    X, y = load_diabetes(return_X_y=True)
    X = minmax_scale(X)
    kept = np.arange(len(y)) != options.patient
    if options.quick:
        kept &= np.arange(len(y)) < 100
    X_train, y_train = X[kept], y[kept]
    print(f"patient {options.patient}, target {y[options.patient]:.0f}")
    for name, make in MODELS.items():
        model = make().fit(X_train, y_train)
        query = X[[options.patient]]
        row = model.weights(query).toarray()[0]
        rest = 1.0 - row.sum()
        total = row @ y_train + rest * y_train.mean()
        print(f"\n{name}: predicts {model.predict(query)[0]:.1f} (weights give {total:.1f})")
        print("sample  weight  target  distance")
        for i in np.argsort(-np.abs(row))[: options.largest]:
            distance = np.abs(X_train[i] - query[0]).sum()
            print(f"{np.flatnonzero(kept)[i]:6} {row[i]:7.3f} {y_train[i]:7.0f} {distance:9.2f}")
        effective = np.abs(row).sum() ** 2 / (row**2).sum()
        print(
            f"the prior mean {y_train.mean():.0f} has weight {rest:.3f}; "
            f"the effective number of samples is {effective:.0f}"
        )


if __name__ == "__main__":
    main()
