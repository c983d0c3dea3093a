# SPDX-License-Identifier: Apache-2.0
"""Writes golden/classic: small models made with coremltools, and what scikit-learn, xgboost, libsvm or numpy predict.

    python tests/golden/classic_truth.py [folder of shared models]

Each NAME.mlmodel has a NAME.json: {"cases": [{"inputs": {feature: value}, "outputs": {feature: value}}], "tolerance": t}.
A value is a number, a string, a list (a vector of doubles, or the items of a sequence), {"keys": [...], "values": [...]}
(a dictionary) or {"shape": [...], "data": [...]}. NaN is the string "nan" in a list of numbers. With the folder of shared
models, the scores of their boosters by xgboost are written too; those .json files name the model by its path.
Needs coremltools 9, scikit-learn 1.5.1, xgboost 2, libsvm-official.
"""
import gzip
import os
import sys
import tempfile

import coremltools as ct
import numpy as np
from coremltools.proto import Model_pb2

from classic_by_hand import (trees_by_hand, linear_by_hand, features_by_hand, suppression_by_hand, neighbors_by_hand, recommender_by_hand, probit_by_hand)
from classic_cases import HERE, rng, write, probabilities, spec_of, data


def sklearn_regressor(name, model, x, y, tests, tolerance=1e-12):
    model.fit(x, y)
    spec = ct.converters.sklearn.convert(model, "input", "target").get_spec()
    write(name, spec, [({"input": t if len(t) > 1 else t[0]}, {"target": model.predict(t[None])[0]}) for t in tests], tolerance)


def sklearn_classifier(name, model, x, y, tests, tolerance=1e-12, proba=True, check_label=True, scale=1):
    model.fit(x, y)
    spec = ct.converters.sklearn.convert(model, "input", "label").get_spec()
    cases = []
    for t in tests:
        out = {}
        if check_label:
            out["label"] = model.predict(t[None])[0]
        if proba:
            out["classProbability"] = probabilities(model.classes_, scale * model.predict_proba(t[None])[0])
        cases.append(({"input": t}, out))
    write(name, spec, cases, tolerance)


def sklearn_models():
    from sklearn.ensemble import (GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier,
                                  RandomForestRegressor)
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC, SVR, LinearSVR, NuSVC, NuSVR
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    x, y = data()
    tests = rng.randn(6, 4)
    single = tests.astype(np.float32).astype(np.float64)
    target = x @ np.array([1.5, -2, 0.3, 0.7]) + np.sin(x[:, 0])
    names = np.array(["red", "green", "blue"])[y]
    sklearn_regressor("linear_regression", LinearRegression(), x, target, tests)
    sklearn_regressor("linear_svr", LinearSVR(random_state=0, max_iter=20000, dual=True), x, target, tests)
    sklearn_classifier("logistic_binary", LogisticRegression(multi_class="ovr"), x, np.where(y > 0, "yes", "no"), tests)
    sklearn_classifier("logistic_multi", LogisticRegression(multi_class="ovr"), x, y, tests)
    small = dict(random_state=1, max_depth=3)
    sklearn_regressor("decision_tree_regressor", DecisionTreeRegressor(**small), x, target, single)
    sklearn_regressor("random_forest_regressor", RandomForestRegressor(n_estimators=4, **small), x, target, single)
    sklearn_regressor("gradient_boosting_regressor", GradientBoostingRegressor(n_estimators=4, **small), x, target, single)
    sklearn_classifier("decision_tree_classifier", DecisionTreeClassifier(**small), x, names, single)
    # The converter moves a binary leaf of exactly one half by 1e-7.
    sklearn_classifier("random_forest_binary", RandomForestClassifier(n_estimators=4, **small), x, (y > 0).astype(int), single, 1e-6)
    # The converter does not divide the sum over the trees by their number.
    sklearn_classifier("random_forest_multi", RandomForestClassifier(n_estimators=3, **small), x, y, single, scale=3)
    sklearn_classifier("gradient_boosting_binary", GradientBoostingClassifier(n_estimators=4, **small), x, (y > 0).astype(int), single)
    sklearn_classifier("gradient_boosting_multi", GradientBoostingClassifier(n_estimators=3, **small), x, y, single)
    # Neighboring float32 values: the threshold is one of them, and the double features lie beside it.
    close = np.float64(np.float32(6.575)) + np.arange(8) * 2.0 ** -21
    close = (close + 2.0 ** -23)[:, None]
    sklearn_regressor("decision_tree_neighbours", DecisionTreeRegressor(random_state=0), close, np.arange(8.0), close)
    for kernel in ("linear", "rbf", "poly", "sigmoid"):
        sklearn_regressor("svr_" + kernel, SVR(kernel=kernel, coef0=0.5, C=0.5), x, target, tests, 1e-9)
        sklearn_classifier("svc_" + kernel, SVC(kernel=kernel, coef0=0.5), x, names, tests, proba=False)
    sklearn_regressor("nu_svr", NuSVR(), x, target, tests, 1e-9)
    sklearn_classifier("nu_svc", NuSVC(nu=0.3), x, y, tests, proba=False)
    sklearn_classifier("svc_binary", SVC(), x, (y > 0).astype(int), tests, proba=False)
    # The label is the most probable class, which scikit-learn's votes need not agree with.
    sklearn_classifier("svc_probability", SVC(probability=True, random_state=0), x, names, tests, 1e-9, check_label=False)
    for algorithm in ("brute", "kd_tree"):
        model = KNeighborsClassifier(n_neighbors=5, algorithm=algorithm).fit(x.astype(np.float32), y)
        spec = ct.converters.sklearn.convert(model, "input", "label").get_spec()
        single_tests = tests.astype(np.float32)
        write("k_neighbors_" + algorithm, spec, [({"input": t}, {"label": model.predict(t[None])[0]}) for t in single_tests])


def sklearn_transformers():
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler

    x, _ = data(20, 4)
    tests = rng.randn(4, 4)

    def transformer(name, model, tests, fit=x):
        model.fit(fit)
        features = [("input", ct.models.datatypes.Array(4))]
        spec = ct.converters.sklearn.convert(model, features, "output").get_spec()
        write(name, spec, [({"input": t}, {"output": model.transform(t[None])[0]}) for t in tests])

    transformer("standard_scaler", StandardScaler(), tests)
    for norm in ("l1", "l2", "max"):
        positive = np.abs(tests) if norm == "max" else tests
        transformer("normalizer_" + norm, Normalizer(norm=norm), np.vstack([positive, np.zeros((1, 4))]))
    holes = x.copy()
    holes[::3, 1] = np.nan
    missing = tests.copy()
    missing[:, 1] = np.nan
    missing[1, 3] = np.nan
    transformer("imputer_nan", SimpleImputer(), missing, holes)
    seven = np.where(np.isnan(missing), 7.0, missing)
    transformer("imputer_value", SimpleImputer(missing_values=7.0, strategy="median"), seven, np.where(np.isnan(holes), 7.0, holes))

    records = [{"a": 1.0, "b": 2.5}, {"b": -1.0, "c": 4.0}, {"d": 3.0, "zzz": 9.0}, {}]
    vectorizer = DictVectorizer(sparse=False).fit([{"d": 1, "a": 1}, {"c": 1, "b": 1}])
    spec = ct.converters.sklearn.convert(vectorizer, "input", "output").get_spec()
    write("dict_vectorizer", spec, [({"input": r}, {"output": vectorizer.transform([r])[0]}) for r in records])

    pipe = Pipeline([("scale", StandardScaler()), ("fit", LinearRegression())]).fit(x, x[:, 0] * 2 + 1)
    spec = ct.converters.sklearn.convert(pipe, ["a", "b", "c", "d"], "target").get_spec()
    write("pipeline_regressor", spec, [(dict(zip("abcd", map(float, t))), {"target": pipe.predict(t[None])[0]}) for t in tests])


def xgboost_models():
    import xgboost as xgb

    x, y = data(80, 4)
    x = x.astype(np.float32)
    target = x @ np.array([1.0, -2, 3, 0.5], np.float32)
    tests = np.vstack([rng.randn(5, 4).astype(np.float32), x[:2]])
    missing = tests.copy()
    missing[1, 0] = missing[2, 3] = np.nan

    def dump(params, labels, rounds, name, cases, **convert):
        d = xgb.DMatrix(x, labels, feature_names=list("abcd"))
        booster = xgb.train(dict(params, max_depth=3, seed=3, base_score=0.5), d, rounds)
        spec = ct.converters.xgboost.convert(booster, ["a", "b", "c", "d"], "target", force_32bit_float=True, **convert).get_spec()
        return booster, spec

    def score(booster, rows, **kw):
        return booster.predict(xgb.DMatrix(rows, feature_names=list("abcd")), **kw)

    booster, spec = dump({"objective": "reg:squarederror"}, target, 4, "", None)
    write("xgboost_regressor", spec, [(dict(zip("abcd", map(float, r))), {"target": v})
                                      for rows in (tests, missing) for r, v in zip(rows, score(booster, rows))], 4e-6)
    # Thresholds that equal features, one step of float32 away on either side, and in between.
    edges = []
    for line in booster.trees_to_dataframe().itertuples():
        if line.Feature == "Leaf":
            continue
        t = np.float32(line.Split)
        for v in (t, np.nextafter(t, np.float32(-9)), np.nextafter(t, np.float32(9))):
            row = tests[0].copy()
            row["abcd".index(line.Feature)] = v
            edges.append((dict(zip("abcd", map(float, row))), {"target": score(booster, row[None])[0]}))
            # A double that rounds to the threshold counts as the threshold.
            close = dict(zip("abcd", map(float, row)))
            close[line.Feature] = float(v) * (1 - 2.0 ** -30 if v > 0 else 1 + 2.0 ** -30)
            edges.append((close, edges[-1][1]))
    write("xgboost_edges", spec, edges, 4e-6)
    booster, spec = dump({"objective": "binary:logistic"}, (y > 0).astype(int), 4, "", None, mode="classifier", n_classes=2)
    write("xgboost_binary", spec, [(dict(zip("abcd", map(float, r))),
                                    {"target": int(v > 0.5), "classProbability": {0: 1 - float(v), 1: v}})
                                   for r, v in zip(tests, score(booster, tests))], 4e-6)
    booster, spec = dump({"objective": "multi:softprob", "num_class": 3}, y, 3, "", None, mode="classifier", n_classes=3)
    write("xgboost_multi", spec, [(dict(zip("abcd", map(float, r))),
                                   {"target": int(np.argmax(v)), "classProbability": dict(enumerate(v))})
                                  for r, v in zip(tests, score(booster, tests))], 4e-6)


def libsvm_models():
    from libsvm.svmutil import svm_parameter, svm_predict, svm_problem, svm_train

    for classes in (2, 3, 5):
        x, y = data(25 * classes, 4, classes)
        y[:classes] = np.arange(classes)
        tests = rng.randn(5, 4)
        model = svm_train(svm_problem(y.tolist(), x.tolist()), svm_parameter("-q -b 1 -t 2"))
        spec = spec_of({"input": [4]}, {"label": "int64", "classProbability": "dict:int64"})
        spec.description.predictedFeatureName = "label"
        spec.description.predictedProbabilitiesName = "classProbability"
        svm = spec.supportVectorClassifier
        svm.kernel.rbfKernel.gamma = model.param.gamma
        labels = model.get_labels()
        pairs = classes * (classes - 1) // 2
        svm.int64ClassLabels.vector.extend(labels)
        svm.rho.extend(model.rho[:pairs])
        svm.probA.extend(model.probA[:pairs])
        svm.probB.extend(model.probB[:pairs])
        svm.numberOfSupportVectorsPerClass.extend(model.nSV[:classes])
        for row in range(classes - 1):
            svm.coefficients.add().alpha.extend(model.sv_coef[row][:model.l])
        for vector in model.get_SV():
            sparse = svm.sparseSupportVectors.vectors.add()
            for index in sorted(k for k in vector if k > 0):
                sparse.nodes.add(index=index, value=vector[index])

        def predicted():
            for t in tests:
                _, _, p = svm_predict([0], [t.tolist()], model, "-q -b 1")
                best = labels[int(np.argmax(p[0]))]
                yield {"input": t}, {"label": best, "classProbability": dict(zip(labels, p[0]))}

        write("libsvm_%d_classes" % classes, spec, list(predicted()), 1e-9)
        if classes == 2:
            model.rho[0] = svm.rho[0] = float("nan")  # as training that fails leaves it
            write("libsvm_nan", spec, list(predicted()), 1e-9)


def shared_boosters(folder):
    import xgboost as xgb
    base = os.path.join(folder, "boosted_trees", "synthetic_models")
    for case in sorted(os.listdir(base)):
        with open(os.path.join(base, case, "model.xgb.gz"), "rb") as f:
            raw = gzip.decompress(f.read())
        with tempfile.NamedTemporaryFile(suffix=".xgb") as t:
            t.write(raw)
            t.flush()
            booster = xgb.Booster(model_file=t.name)
        spec = Model_pb2.Model()
        with open(os.path.join(base, case, "model.mlmodel.gz"), "rb") as f:
            spec.ParseFromString(gzip.decompress(f.read()))
        names = [f.name for f in spec.description.input]
        target = spec.description.output[0].name
        splits = [n.branchFeatureValue for n in spec.treeEnsembleRegressor.treeEnsemble.nodes if n.nodeBehavior != 6]
        picks = np.float32(rng.choice(splits, (40, len(names))))
        picks[20:] += np.float32(rng.randn(20, len(names)))
        picks[rng.rand(*picks.shape) < 0.1] = np.nan
        scores = booster.predict(xgb.DMatrix(picks, feature_names=booster.feature_names), output_margin=True)
        write("shared_" + case, None, [({n: float(v) for n, v in zip(names, row)}, {target: s}) for row, s in zip(picks, scores)],
              4e-6, "boosted_trees/synthetic_models/%s/model.mlmodel.gz" % case)


if __name__ == "__main__":
    os.makedirs(HERE, exist_ok=True)
    for make in (sklearn_models, sklearn_transformers, xgboost_models, libsvm_models, trees_by_hand, linear_by_hand, features_by_hand,
                 suppression_by_hand, neighbors_by_hand, recommender_by_hand, probit_by_hand):
        make()
    if len(sys.argv) > 1:
        shared_boosters(sys.argv[1])
