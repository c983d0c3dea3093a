# SPDX-License-Identifier: Apache-2.0
"""Classic models that are made field by field: a part of tests/golden/classic_truth.py."""
import coremltools as ct
import numpy as np

from classic_cases import DOUBLE, rng, write, probabilities, spec_of


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
