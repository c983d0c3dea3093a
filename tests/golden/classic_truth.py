# SPDX-License-Identifier: Apache-2.0
"""Writes golden/classic: small models made with coremltools, and what scikit-learn, xgboost, libsvm or numpy predict.

    python tests/golden/classic_truth.py [folder of shared models]

Each NAME.mlmodel has a NAME.json: {"cases": [{"inputs": {feature: value}, "outputs": {feature: value}}], "tolerance": t}.
A value is a number, a string, a list (a vector of doubles, or the items of a sequence), {"keys": [...], "values": [...]}
(a dictionary) or {"shape": [...], "data": [...]}. NaN is the string "nan" in a list of numbers. With the folder of shared
models, the scores of their boosters by xgboost are written too; those .json files name the model by its path.
Needs coremltools 9, scikit-learn 1.5.1, xgboost 2, libsvm-official.
"""
import json
import os
import sys
import tempfile
import gzip

import coremltools as ct
import numpy as np
from coremltools.proto import FeatureTypes_pb2, Model_pb2

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "classic")
DOUBLE = FeatureTypes_pb2.ArrayFeatureType.DOUBLE
rng = np.random.RandomState(7)


def number(v):
    v = float(v)
    return v if np.isfinite(v) else str(v)


def plain(v):
    if isinstance(v, dict) and "shape" in v:
        return v
    if isinstance(v, dict):
        keys = [k if isinstance(k, str) else int(k) for k in v]
        return {"keys": keys, "values": [number(x) for x in v.values()]}
    if isinstance(v, np.ndarray):
        return [number(x) for x in v.reshape(-1)]
    if isinstance(v, (list, tuple)):
        return [x if isinstance(x, (str, int)) else number(x) for x in v]
    if isinstance(v, (str, np.str_)):
        return str(v)
    if isinstance(v, (int, np.integer)):
        return int(v)
    return number(v)


def write(name, spec, cases, tolerance=1e-12, model=None):
    if spec is not None:
        with open(os.path.join(HERE, name + ".mlmodel"), "wb") as f:
            f.write(spec.SerializeToString(deterministic=True))
    out = {"tolerance": tolerance, "cases": [{"inputs": {k: plain(v) for k, v in i.items()},
                                             "outputs": {k: plain(v) for k, v in o.items()}} for i, o in cases]}
    if model is not None:
        out["model"] = model
    with open(os.path.join(HERE, name + ".json"), "w") as f:
        json.dump(out, f, allow_nan=False)
        f.write("\n")


def probabilities(classes, row):
    return {c if isinstance(c, str) else int(c): p for c, p in zip(classes, row)}


def spec_of(inputs, outputs, version=1):
    """A specification with features given as name -> "double", "int64", "string", "dict:string", "dict:int64",
    "seq:string", "seq:int64" or a shape."""
    spec = Model_pb2.Model()
    spec.specificationVersion = version
    for features, target in ((inputs, spec.description.input), (outputs, spec.description.output)):
        for name, kind in features.items():
            f = target.add()
            f.name = name
            t = f.type
            if isinstance(kind, (list, tuple)):
                t.multiArrayType.shape.extend(kind)
                t.multiArrayType.dataType = DOUBLE
            elif kind.startswith("dict"):
                getattr(t.dictionaryType, kind[5:] + "KeyType").SetInParent()
            elif kind.startswith("seq"):
                getattr(t.sequenceType, kind[4:] + "Type").SetInParent()
                t.sequenceType.sizeRange.upperBound = -1
            else:
                getattr(t, kind + "Type").SetInParent()
    return spec


def data(n=60, d=4, classes=3):
    x = rng.randn(n, d)
    y = np.argmax(x @ rng.randn(d, classes) + 0.3 * rng.randn(n, classes), axis=1)
    return x, y


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


def trees_by_hand():
    """All branch modes, missing values either way, several dimensions; numpy decides."""
    import operator
    modes = {"BranchOnValueLessThanEqual": operator.le, "BranchOnValueLessThan": operator.lt,
             "BranchOnValueGreaterThanEqual": operator.ge, "BranchOnValueGreaterThan": operator.gt,
             "BranchOnValueEqual": operator.eq, "BranchOnValueNotEqual": operator.ne}
    features = [("x", ct.models.datatypes.Array(3)), ("n", ct.models.datatypes.Int64()), ("z", ct.models.datatypes.Double())]
    builder = ct.models.tree_ensemble.TreeEnsembleRegressor(features, [("y", ct.models.datatypes.Double())])
    y_type = builder.spec.description.output[0].type
    y_type.multiArrayType.shape.append(12)
    y_type.multiArrayType.dataType = DOUBLE
    builder.set_default_prediction_value([0.1 * i for i in range(12)])
    trees = []
    for i, (mode, fn) in enumerate(modes.items()):
        for missing in (False, True):
            t = len(trees)
            feature, threshold = t % 5, float(t % 3)
            # Node numbers are not in order, the parent comes last.
            builder.add_leaf_node(t, 7, {t: 1.0})
            builder.add_leaf_node(t, 3, {t: -1.0, (t + 1) % 12: 0.25})
            builder.add_branch_node(t, 9, feature, threshold, mode, 7, 3, missing_value_tracks_true_child=missing)
            trees.append((fn, feature, threshold, missing))
    cases = []
    for _ in range(12):
        x = rng.randint(-1, 3, 5).astype(float)
        x[rng.randint(5)] = np.nan
        x[3] = 1.0 if np.isnan(x[3]) else x[3]
        y = np.array([0.1 * i for i in range(12)])
        for t, (fn, feature, threshold, missing) in enumerate(trees):
            v = x[feature]
            if missing if np.isnan(v) else fn(v, threshold):
                y[t] += 1.0
            else:
                y[t] -= 1.0
                y[(t + 1) % 12] += 0.25
        cases.append(({"x": x[:3], "n": int(x[3]), "z": x[4]}, {"y": y}))
    write("trees_all_modes", builder.spec, cases)

    for transform in ("Classification_SoftMax", "Classification_SoftMaxWithZeroClassReference", "Regression_Logistic", "NoTransform"):
        labels = ["a", "b", "c"]
        builder = ct.models.tree_ensemble.TreeEnsembleClassifier([("x", ct.models.datatypes.Double())], labels, "label")
        k = 2 if transform == "Classification_SoftMaxWithZeroClassReference" else 3
        builder.set_default_prediction_value([0.5] * k)
        builder.set_post_evaluation_transform(transform)
        low, high = rng.randn(k).tolist(), rng.randn(k).tolist()
        builder.add_branch_node(0, 0, 0, 1.5, "BranchOnValueLessThan", 1, 2)
        builder.add_leaf_node(0, 1, low)
        builder.add_leaf_node(0, 2, high)
        cases = []
        for v in (0.0, 1.5):
            s = 0.5 + np.array(low if v < 1.5 else high)
            if k == 2:
                s = np.append(0.0, s)
            if "SoftMax" in transform:
                s = np.exp(s) / np.exp(s).sum()
            elif transform == "Regression_Logistic":
                s = 1 / (1 + np.exp(-s))
            cases.append(({"x": v}, {"label": labels[int(np.argmax(s))], "classProbability": dict(zip(labels, s))}))
        write("trees_" + transform.lower(), builder.spec, cases)


def linear_by_hand():
    from scipy.stats import norm
    w, b = np.array([0.7, -1.2]), 0.25
    tests = [rng.randn(2) for _ in range(3)] + [np.array([60.0, -70.0])]
    links = {"NoTransform": lambda s: s, "Logit": lambda s: 1 / (1 + np.exp(-s)), "Probit": norm.cdf}
    for name, link in links.items():
        spec = spec_of({"x": [2]}, {"y": "double"})
        glm = spec.glmRegressor
        glm.weights.add().value.extend(w)
        glm.offset.append(b)
        glm.postEvaluationTransform = glm.PostEvaluationTransform.Value(name)
        write("glm_regressor_" + name.lower(), spec, [({"x": t}, {"y": link(w @ t + b)}) for t in tests])
    spec = spec_of({"feature_1": "double", "feature_2": "double"}, {"output": "double"})
    spec.glmRegressor.weights.add().value.extend([1.0, 2.0])
    spec.glmRegressor.offset.append(0.1)
    write("glm_exact", spec, [({"feature_1": 1.0, "feature_2": 1.0}, {"output": 3.1})], 0)

    spec = spec_of({"x": [2]}, {"y": [2]})
    matrix = rng.randn(2, 2)
    for row in matrix:
        spec.glmRegressor.weights.add().value.extend(row)
    spec.glmRegressor.offset.extend([0.5, -0.5])
    write("glm_two_outputs", spec, [({"x": t}, {"y": matrix @ t + [0.5, -0.5]}) for t in tests])

    for encoding in ("ReferenceClass", "OneVsRest"):
        for transform in ("Logit", "Probit"):
            for classes in (2, 3):
                if encoding == "ReferenceClass" and transform == "Probit" and classes > 2:
                    continue
                spec = spec_of({"x": [2]}, {"label": "int64", "p": "dict:int64"})
                spec.description.predictedFeatureName, spec.description.predictedProbabilitiesName = "label", "p"
                glm = spec.glmClassifier
                rows = 1 if classes == 2 else classes - (encoding == "ReferenceClass")
                m, o = rng.randn(rows, 2), rng.randn(rows)
                for row in m:
                    glm.weights.add().value.extend(row)
                glm.offset.extend(o)
                glm.classEncoding = glm.ClassEncoding.Value(encoding)
                glm.postEvaluationTransform = glm.PostEvaluationTransform.Value(transform)
                labels = [30, 10, 20][:classes]
                glm.int64ClassLabels.vector.extend(labels)
                cases = []
                for t in tests[:3]:
                    s = m @ t + o
                    if classes == 2:
                        p = links[transform](s[0])
                        p = np.array([1 - p, p])
                    elif encoding == "OneVsRest":
                        p = links[transform](s)
                        p = p / p.sum()
                    else:
                        p = np.exp(np.append(0, s))
                        p = p / p.sum()
                    cases.append(({"x": t}, {"label": labels[int(np.argmax(p))], "p": dict(zip(labels, p))}))
                write("glm_%s_%s_%d" % (encoding.lower(), transform.lower(), classes), spec, cases)


def features_by_hand():
    spec = spec_of({"a": "int64", "b": "double", "c": [2, 2], "d": "dict:int64"}, {"y": [9]})
    for name, size in (("c", 4), ("a", 1), ("d", 3), ("b", 1)):
        column = spec.featureVectorizer.inputList.add()
        column.inputColumn, column.inputDimensions = name, size
    c = {"shape": [2, 2], "data": [1.5, 2.5, 3.5, 4.5]}
    write("feature_vectorizer", spec, [({"a": 2 ** 40, "b": -0.5, "c": c, "d": {2: 7.0, 0: 8.0}},
                                        {"y": [1.5, 2.5, 3.5, 4.5, float(2 ** 40), 8.0, 0.0, 7.0, -0.5]})])
    for sparse in (True, False):
        spec = spec_of({"x": "string"}, {"y": "dict:int64" if sparse else [3]})
        spec.oneHotEncoder.stringCategories.vector.extend(["pear", "apple", "fig"])
        spec.oneHotEncoder.outputSparse = sparse
        spec.oneHotEncoder.handleUnknown = 1
        cases = []
        for i, word in enumerate(["pear", "apple", "fig", "kiwi"]):
            hot = np.array([1.0 if i == k else 0.0 for k in range(3)])
            cases.append(({"x": word}, {"y": {i: 1.0} if i < 3 else {}} if sparse else {"y": hot}))
        write("one_hot_string_" + ("sparse" if sparse else "dense"), spec, cases)
    spec = spec_of({"x": "int64"}, {"y": [3]})
    spec.oneHotEncoder.int64Categories.vector.extend([5, -2, 9])
    write("one_hot_int", spec, [({"x": -2}, {"y": [0.0, 1.0, 0.0]}), ({"x": 9}, {"y": [0.0, 0.0, 1.0]})])

    spec = spec_of({"x": "string"}, {"y": "int64"})
    for k, v in (("b", 2), ("a", 1), ("c", 2 ** 60 + 1)):
        spec.categoricalMapping.stringToInt64Map.map[k] = v
    spec.categoricalMapping.int64Value = -1
    write("mapping_string", spec, [({"x": k}, {"y": v}) for k, v in (("a", 1), ("b", 2), ("c", 2 ** 60 + 1), ("z", -1))])
    spec = spec_of({"x": "int64"}, {"y": "string"})
    spec.categoricalMapping.int64ToStringMap.map[4] = "four"
    spec.categoricalMapping.int64ToStringMap.map[-1] = "less"
    spec.categoricalMapping.strValue = "?"
    write("mapping_int", spec, [({"x": k}, {"y": v}) for k, v in ((4, "four"), (-1, "less"), (0, "?"))])

    spec = spec_of({"x": [4]}, {"y": [2]})
    spec.arrayFeatureExtractor.extractIndex.extend([3, 1])
    write("extractor_array", spec, [({"x": [1.0, 2.0, 3.0, 4.0]}, {"y": [4.0, 2.0]})])
    spec = spec_of({"x": [4]}, {"y": "double"})
    spec.arrayFeatureExtractor.extractIndex.append(2)
    write("extractor_scalar", spec, [({"x": [1.0, 2.0, 3.25, 4.0]}, {"y": 3.25})])

    spec = spec_of({"x": [3]}, {"y": [3]})
    spec.scaler.shiftValue.extend([1.0, 2.0, 3.0])
    spec.scaler.scaleValue.append(0.5)
    write("scaler_one_scale", spec, [({"x": [1.0, 2.0, 4.0]}, {"y": [1.0, 2.0, 3.5]})])
    spec = spec_of({"x": "int64"}, {"y": "int64"})
    spec.imputer.imputedInt64Value, spec.imputer.replaceInt64Value = 2 ** 60 + 1, -1
    write("imputer_int", spec, [({"x": -1}, {"y": 2 ** 60 + 1}), ({"x": 3}, {"y": 3})])
    spec = spec_of({"x": "string"}, {"y": "string"})
    spec.imputer.imputedStringValue, spec.imputer.replaceStringValue = "none", ""
    write("imputer_string", spec, [({"x": ""}, {"y": "none"}), ({"x": "a"}, {"y": "a"})])
    spec = spec_of({"x": "dict:string"}, {"y": "dict:string"})
    for k, v in (("b", 2.0), ("a", 1.0)):
        spec.imputer.imputedStringDictionary.map[k] = v
    spec.imputer.replaceDoubleValue = float("nan")
    write("imputer_dict", spec, [({"x": {"a": float("nan"), "c": 5.0, "b": 4.0}}, {"y": {"a": 1.0, "c": 5.0, "b": 4.0}})])
    spec = spec_of({"x": "double", "s": "string"}, {"y": "double", "t": "string"})
    spec.identity.SetInParent()
    write("identity", spec, [({"x": 1.25, "s": "same"}, {"y": 1.25, "t": "same"})])


def suppression_by_hand():
    def iou(a, b):
        lo = np.maximum(a[:2] - a[2:] / 2, b[:2] - b[2:] / 2)
        hi = np.minimum(a[:2] + a[2:] / 2, b[:2] + b[2:] / 2)
        inner = np.prod(np.maximum(hi - lo, 0))
        return inner / (a[2] * a[3] + b[2] * b[3] - inner)

    for per_class in (False, True):
        spec = spec_of({"c": [8, 2], "b": [8, 4], "it": "double", "ct": "double"}, {"co": [0], "bo": [0]}, 3)
        for f, width in zip(spec.description.output, (2, 4)):
            del f.type.multiArrayType.shape[:]
            for lower, upper in ((0, -1), (width, width)):
                f.type.multiArrayType.shapeRange.sizeRanges.add(lowerBound=lower, upperBound=upper)
        nms = spec.nonMaximumSuppression
        nms.pickTop.perClass = per_class
        nms.iouThreshold, nms.confidenceThreshold = 0.4, 0.2
        nms.confidenceInputFeatureName, nms.coordinatesInputFeatureName = "c", "b"
        nms.confidenceOutputFeatureName, nms.coordinatesOutputFeatureName = "co", "bo"
        nms.iouThresholdInputFeatureName, nms.confidenceThresholdInputFeatureName = "it", "ct"
        nms.stringClassLabels.vector.extend(["cat", "dog"])
        cases = []
        for it, ctr in ((float("nan"), float("nan")), (0.1, 0.0), (1.0, 0.3)):
            boxes = np.hstack([rng.rand(8, 2), 0.3 + 0.3 * rng.rand(8, 2)])
            scores = rng.rand(8, 2)
            i_thr, c_thr = 0.4 if np.isnan(it) else it, 0.2 if np.isnan(ctr) else ctr
            order = [k for k in np.argsort(-scores.max(1), kind="stable") if scores[k].max() >= c_thr]
            kept = []
            for k in order:
                if all(iou(boxes[k], boxes[j]) <= i_thr or (per_class and scores[k].argmax() != scores[j].argmax()) for j in kept):
                    kept.append(k)
            pack = lambda a: {"shape": list(a.shape), "data": a.reshape(-1).tolist()}
            cases.append(({"c": pack(scores), "b": pack(boxes), "it": it, "ct": ctr},
                          {"co": pack(scores[kept]), "bo": pack(boxes[kept])}))
        write("suppression_%s" % ("per_class" if per_class else "all"), spec, cases)


def neighbors_by_hand():
    spec = spec_of({"x": [2]}, {"label": "string", "p": "dict:string"}, 4)
    spec.description.predictedFeatureName, spec.description.predictedProbabilitiesName = "label", "p"
    knn = spec.kNearestNeighborsClassifier
    samples = rng.randn(9, 2).astype(np.float32)
    labels = ["b", "a", "c"] * 3
    for s in samples:
        knn.nearestNeighborsIndex.floatSamples.add().vector.extend(s.tolist())
    knn.nearestNeighborsIndex.numberOfDimensions = 2
    knn.nearestNeighborsIndex.linearIndex.SetInParent()
    knn.nearestNeighborsIndex.squaredEuclideanDistance.SetInParent()
    knn.numberOfNeighbors.defaultValue = 4
    knn.inverseDistanceWeighting.SetInParent()
    knn.stringClassLabels.vector.extend(labels)
    from sklearn.neighbors import KNeighborsClassifier
    model = KNeighborsClassifier(4, weights="distance", algorithm="brute").fit(samples.astype(np.float64), labels)
    cases = []
    for t in list(rng.randn(4, 2)) + [samples[3].astype(np.float64)]:
        cases.append(({"x": t}, {"label": model.predict(t[None])[0], "p": probabilities(model.classes_, model.predict_proba(t[None])[0])}))
    write("neighbors_inverse", spec, cases, 1e-6)
    empty = spec_of({"x": [2]}, {"label": "int64"}, 4)
    empty.description.predictedFeatureName = "label"
    knn = empty.kNearestNeighborsClassifier
    knn.nearestNeighborsIndex.numberOfDimensions = 2
    knn.numberOfNeighbors.defaultValue = 3
    knn.defaultInt64Label = -4
    write("neighbors_empty", empty, [({"x": [1.0, 2.0]}, {"label": -4})])


def recommender_by_hand():
    ids = ["tea", "milk", "bread", "jam"]
    similarity = np.array([[0, .9, 0, .2], [.8, 0, .1, 0], [0, .3, 0, .7], [.4, 0, .6, 0]])
    shift = np.array([0, 0.1, 0, -0.2])
    spec = spec_of({"items": "dict:string", "n": "int64", "only": "seq:string", "not": "seq:string"},
                   {"best": "seq:string", "scores": "dict:string"}, 4)
    m = spec.itemSimilarityRecommender
    m.itemStringIds.vector.extend(ids)
    for i in range(4):
        row = m.itemItemSimilarities.add(itemId=i, itemScoreAdjustment=shift[i])
        for k in range(4):
            if similarity[i, k]:
                row.similarItemList.add(itemId=k, similarityScore=similarity[i, k])
    m.itemInputFeatureName, m.numRecommendationsInputFeatureName = "items", "n"
    m.itemRestrictionInputFeatureName, m.itemExclusionInputFeatureName = "only", "not"
    m.recommendedItemListOutputFeatureName, m.recommendedItemScoreOutputFeatureName = "best", "scores"
    cases = []
    for given, n, only, never in (({"tea": 1.0, "jam": 0.5}, -1, [], []), ({"milk": 2.0, "unknown": 3.0}, 2, [], []),
                                  ({"bread": 1.0}, 9, ["jam", "milk"], []), ({"bread": 1.0, "tea": 1.0}, 9, [], ["jam"])):
        scores = np.zeros(4)
        for name, s in given.items():
            if name in ids:
                scores += similarity[ids.index(name)] * (s - shift)
        allowed = [i for i in range(4) if (not only or ids[i] in only) and ids[i] not in (never or given)]
        best = sorted(allowed, key=lambda i: -scores[i])[: n if n >= 0 else None]
        cases.append(({"items": given, "n": n, "only": only, "not": never},
                      {"best": [ids[i] for i in best], "scores": {ids[i]: scores[i] for i in best}}))
    write("recommender", spec, cases)


def probit_by_hand():
    """The sum of independent normal weights, computed by quadrature: P = integral of Phi(w) N(w; mean, variance)."""
    from scipy.integrate import quad
    from scipy.stats import norm
    table = {0: {0: (0.3, 4.0), 1: (-0.7, 2.5)}, 1: {2: (1.1, 0.8), 5: (0.2, 9.0)}, 3: {7: (-1.4, 1.5)}}
    bias = (-0.15, 16.0)

    def model(inputs, outputs, with_bias=True):
        spec = spec_of(inputs, outputs)
        m = spec.bayesianProbitRegressor
        m.numberOfFeatures = 4
        if with_bias:
            m.bias.mean, m.bias.precision = bias
        for i, values in sorted(table.items(), reverse=True):  # files need not be in order
            feature = m.features.add(featureId=i)
            for value, (mean, precision) in values.items():
                feature.weights.add(featureValue=value, featureWeight=dict(mean=mean, precision=precision))
        m.regressionInputFeatureName = "x"
        return spec, m

    def moments(pairs, with_bias=True):
        some = [table[i][v] for i, v in pairs if v in table.get(i, {})] + ([bias] if with_bias else [])
        return sum(m for m, _ in some), sum(1 / p for _, p in some)

    def probability(mean, variance):
        sd = np.sqrt(variance)
        return quad(lambda t: norm.cdf(mean + sd * t) * norm.pdf(t), -12, 12, epsabs=1e-14, epsrel=1e-13)[0] if sd else norm.cdf(mean)

    spec, m = model({"x": [4], "o": "double", "scale": "double", "limit": "double"},
                    {"p": "double", "mean": "double", "variance": "double", "low": "double", "sample": "double"})
    for name in ("o", "scale", "limit"):
        next(f for f in spec.description.input if f.name == name).type.isOptional = True
    m.optimismInputFeatureName, m.samplingScaleInputFeatureName, m.samplingTruncationInputFeatureName = "o", "scale", "limit"
    m.meanOutputFeatureName, m.varianceOutputFeatureName = "mean", "variance"
    m.pessimisticProbabilityOutputFeatureName, m.sampledProbabilityOutputFeatureName = "low", "sample"
    cases = []
    # A scale or a limit of 0 leaves nothing to chance.
    for x, o, scale, limit in (([0, 2, 9, 7], -1.5, 0.0, 3.0), ([1, 5, 0, 0], 0.7, 2.0, 0.0), ([8, 8, 8, 8], float("nan"), 0.0, float("nan"))):
        mean, variance = moments(list(enumerate(x)))
        shift = 0 if np.isnan(o) else o * np.sqrt(variance)
        cases.append(({"x": np.array(x, float), "o": o, "scale": scale, "limit": limit},
                      {"p": probability(mean, variance), "mean": mean, "variance": variance,
                       "low": probability(mean + shift, variance), "sample": norm.cdf(mean)}))
    write("probit", spec, cases, 1e-11)

    spec, m = model({"x": [3, 2]}, {"p": "double"}, False)
    cases = []
    for pairs in ([(0, 1), (1, 2), (3, 7)], [(3, 7), (2, 0), (1, 9)], [(0, 0), (0, 0), (0, 1)]):
        x = {"shape": [3, 2], "data": [float(v) for pair in pairs for v in pair]}
        cases.append(({"x": x}, {"p": probability(*moments(pairs, False))}))
    write("probit_pairs", spec, cases, 1e-11)


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
