# SPDX-License-Identifier: Apache-2.0
"""The models of the table benchmark: trained here and converted to Core ML and ONNX."""

import dataclasses
import typing
import warnings

import numpy as np

COLUMNS = 20
CLASSES = 3
TRAINING_ROWS = 4000
EDGES = {3: [-1.0, 1.0], 10: [-4.0, -2.5, -1.5, -0.75, 0.0, 0.75, 1.5, 2.5, 4.0]}  # between the classes


@dataclasses.dataclass
class Case:
    name: str
    title: str
    train: typing.Callable  # (x, y, classes) -> fitted estimator
    classifier: bool = False
    decides: bool = False  # returns classes without probabilities
    votes: bool = False  # coremltools omits the division by the number of trees
    columns: int = COLUMNS
    classes: int = CLASSES
    training_rows: int = TRAINING_ROWS
    single: bool = False  # Moka gets a table of float32, too
    tolerance: float = 1e-5  # relative to the library's largest output; scores summed in single precision differ more


def data(rows, seed, columns=COLUMNS, classes=CLASSES):
    """Features, a regression target and a class, all with the same structure."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns))
    y = x[:, 0] * 2 - x[:, 1] * x[:, 2] + np.sin(3 * x[:, 3]) + 0.1 * rng.normal(size=rows)
    return x, y, np.digitize(y, EDGES[classes])


def boosted(trees):
    def train(x, y, classes):
        import xgboost

        return xgboost.XGBRegressor(n_estimators=trees, max_depth=6, base_score=0.5, n_jobs=-1).fit(x, y)

    return train


def boosted_classifier(x, y, classes):
    import xgboost

    return xgboost.XGBClassifier(n_estimators=100, max_depth=6, n_jobs=-1).fit(x, classes)


def sklearn(module, name, target="y", **options):
    def train(x, y, classes):
        made = getattr(__import__(f"sklearn.{module}", fromlist=[name]), name)(**options)
        return made.fit(x, y if target == "y" else classes if target == "classes" else classes > 0)

    return train


def scaled_logistic(x, y, classes):
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(multi_class="ovr")).fit(x, classes)


CASES = [
    Case("xgboost_100", "XGBoost, 100 trees", boosted(100)),
    Case("xgboost_1000", "XGBoost, 1,000 trees", boosted(1000)),
    Case("xgboost_classifier", "XGBoost classifier, 3 x 100 trees", boosted_classifier, classifier=True),
    Case("random_forest", "random forest classifier, 100 trees",
         sklearn("ensemble", "RandomForestClassifier", "classes", n_estimators=100, max_depth=12, random_state=1), classifier=True, votes=True),
    Case("gradient_boosting", "gradient boosting, 100 trees", sklearn("ensemble", "GradientBoostingRegressor", n_estimators=100, random_state=1)),
    Case("svc", "SVC, radial basis", sklearn("svm", "SVC", "classes"), classifier=True, decides=True),
    Case("svr", "SVR, radial basis", sklearn("svm", "SVR")),
    Case("logistic", "logistic regression", sklearn("linear_model", "LogisticRegression", "classes", multi_class="ovr"), classifier=True),
    Case("scaler_logistic", "scaler and logistic regression", scaled_logistic, classifier=True),
    Case("linear", "linear regression", sklearn("linear_model", "LinearRegression")),
    Case("neighbours", "5 nearest neighbours", sklearn("neighbors", "KNeighborsClassifier", "classes", n_neighbors=5), classifier=True,
         decides=True),
    Case("logistic_wide", "logistic regression, 64 columns, 10 classes",
         sklearn("linear_model", "LogisticRegression", "classes", multi_class="ovr", max_iter=300), classifier=True, columns=64, classes=10),
    Case("linear_wide", "linear regression, 64 columns of float32", sklearn("linear_model", "LinearRegression"), columns=64, single=True),
    Case("neighbours_many", "5 nearest neighbors of 5,000, 30 columns", sklearn("neighbors", "KNeighborsClassifier", "classes", n_neighbors=5),
         classifier=True, decides=True, columns=30, training_rows=5000),
]


def is_xgboost(estimator):
    return type(estimator).__module__.startswith("xgboost")


def to_coreml(case, estimator, path):
    import coremltools as ct

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if is_xgboost(estimator):
            options = {"mode": "classifier", "class_labels": list(range(CLASSES))} if case.classifier else {}
            ct.converters.xgboost.convert(estimator, feature_names=[f"f{i}" for i in range(case.columns)], force_32bit_float=False, **options).save(path)
        else:
            ct.converters.sklearn.convert(estimator, "x").save(path)


def to_onnx(case, estimator, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if is_xgboost(estimator):
            from onnxmltools import convert_xgboost
            from onnxmltools.convert.common.data_types import FloatTensorType

            made = convert_xgboost(estimator, initial_types=[("x", FloatTensorType([None, case.columns]))], target_opset=15)
        else:
            from skl2onnx import convert_sklearn
            from skl2onnx.common.data_types import FloatTensorType

            options = {id(estimator): {"zipmap": False}} if case.classifier else None
            made = convert_sklearn(estimator, initial_types=[("x", FloatTensorType([None, case.columns]))], options=options, target_opset=15)
    with open(path, "wb") as f:
        f.write(made.SerializeToString())
