// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "import/classic/classic.h"

namespace moka::import {
namespace {

using classic::Site;
using ir::DType;
using ir::NamedArg;
using ir::Tensor;
using ir::Value;

/// Support vectors without their zeros.
struct Vectors {
  std::vector<int64_t> row_begin{0}, columns;
  std::vector<double> values;
  int64_t width = 0;  ///< greatest column plus 1
  int64_t count() const { return static_cast<int64_t>(row_begin.size()) - 1; }
};

Result<Vectors> read(const proto::SparseSupportVectors& v) {
  Vectors out;
  for (const auto& row : v.vectors()) {
    int32_t previous = 0;
    for (const auto& node : row.nodes()) {
      if (node.index() <= previous)
        return fail(ErrorCode::malformed, "support vector ", out.count(), ": expected an index above ", previous,
                    ", got ", node.index());
      previous = node.index();
      out.columns.push_back(previous - 1);
      out.values.push_back(node.value());
    }
    out.width = std::max<int64_t>(out.width, previous);
    out.row_begin.push_back(static_cast<int64_t>(out.columns.size()));
  }
  return out;
}

Result<Vectors> read(const proto::DenseSupportVectors& v) {
  Vectors out;
  for (const auto& row : v.vectors()) {
    if (out.count() > 0 && row.values_size() != out.width)
      return fail(ErrorCode::malformed, "support vector ", out.count(), ": expected ", out.width, " numbers, got ",
                  row.values_size());
    out.width = row.values_size();
    for (int i = 0; i < row.values_size(); ++i) {
      if (row.values(i) == 0) continue;
      out.columns.push_back(i);
      out.values.push_back(row.values(i));
    }
    out.row_begin.push_back(static_cast<int64_t>(out.columns.size()));
  }
  return out;
}

template <class Svm>
Result<Vectors> vectors_of(const Svm& svm) {
  Vectors v =
      MOKA_TRY(svm.has_sparsesupportvectors() ? read(svm.sparsesupportvectors()) : read(svm.densesupportvectors()));
  if (v.count() == 0) return fail(ErrorCode::malformed, "support vector machine without support vectors");
  return v;
}

Result<Value*> kernel(const Site& site, const proto::Kernel& k, const Vectors& v, bool exact) {
  const char* name = "linear";
  double gamma = 0, c = 0;
  int degree = 0;
  switch (k.kernel_case()) {
    case proto::Kernel::kLinearKernel: break;
    case proto::Kernel::kRbfKernel:
      name = "rbf";
      gamma = k.rbfkernel().gamma();
      break;
    case proto::Kernel::kPolyKernel:
      name = "poly";
      gamma = k.polykernel().gamma(), c = k.polykernel().c(), degree = k.polykernel().degree();
      break;
    case proto::Kernel::kSigmoidKernel:
      name = "sigmoid";
      gamma = k.sigmoidkernel().gamma(), c = k.sigmoidkernel().c();
      break;
    default: return fail(ErrorCode::malformed, "support vector machine without a kernel");
  }
  Value* x = MOKA_TRY(site.vector(v.width));
  std::vector<NamedArg> args{{"x", x}, {"kernel", name}, {"degree", degree}, {"exact", exact}};
  args.emplace_back("gamma", Tensor::scalar(DType::fp64, gamma));
  args.emplace_back("c", Tensor::scalar(DType::fp64, c));
  args.emplace_back("row_begin", MOKA_TRY(site.tensor(v.row_begin)));
  args.emplace_back("columns", MOKA_TRY(site.tensor(v.columns)));
  args.emplace_back("values", MOKA_TRY(site.tensor(v.values)));
  return site.op("ml_svm_kernel", std::move(args), "kernel");
}

Status import_regressor(const Site& site, const proto::SupportVectorRegressor& svm) {
  Vectors v = MOKA_TRY(vectors_of(svm));
  if (svm.coefficients().alpha_size() != v.count())
    return fail(ErrorCode::malformed, "supportVectorRegressor: expected ", v.count(), " coefficients, got ",
                svm.coefficients().alpha_size());
  Value* k = MOKA_TRY(kernel(site, svm.kernel(), v, false));
  Tensor alpha = MOKA_TRY(site.tensor(classic::span_of(svm.coefficients().alpha()), {1, v.count()}));
  const double offset[] = {-svm.rho()};
  Tensor rho = MOKA_TRY(site.tensor(offset));
  Value* y = MOKA_TRY(site.op("ml_linear", {{"x", k}, {"weights", alpha}, {"offset", rho}}, "sum"));
  return site.output(*MOKA_TRY(site.only_output()), y);
}

Status import_classifier(const Site& site, const proto::SupportVectorClassifier& svm) {
  Tensor classes = MOKA_TRY(classic::class_labels(site, svm));
  Vectors v = MOKA_TRY(vectors_of(svm));
  std::vector<int64_t> counts(svm.numberofsupportvectorsperclass().begin(), svm.numberofsupportvectorsperclass().end());
  int64_t n = classes.count(), pairs = n * (n - 1) / 2;
  if (n < 2 || static_cast<int64_t>(counts.size()) != n)
    return fail(ErrorCode::malformed, "supportVectorClassifier: expected numbers of support vectors for ", n,
                " classes, got ", counts.size());
  int64_t sum = 0;
  for (int64_t c : counts) {
    if (c < 0) return fail(ErrorCode::malformed, "supportVectorClassifier: a class with ", c, " support vectors");
    sum += c;
  }
  if (sum != v.count())
    return fail(ErrorCode::malformed, "supportVectorClassifier: expected ", sum, " support vectors, got ", v.count());
  if (svm.coefficients_size() != n - 1)
    return fail(ErrorCode::malformed, "supportVectorClassifier: expected ", n - 1, " rows of coefficients, got ",
                svm.coefficients_size());
  std::vector<double> alpha;
  for (const auto& row : svm.coefficients()) {
    if (row.alpha_size() != sum)
      return fail(ErrorCode::malformed, "supportVectorClassifier: expected ", sum, " coefficients in each row, got ",
                  row.alpha_size());
    alpha.insert(alpha.end(), row.alpha().begin(), row.alpha().end());
  }
  auto check = [&](const char* what, int64_t size) -> Status {
    if (size == pairs) return {};
    return fail(ErrorCode::malformed, "supportVectorClassifier: expected ", pairs, " values of ", what, ", got ", size);
  };
  MOKA_TRY(check("rho", svm.rho_size()));
  Value* k = MOKA_TRY(kernel(site, svm.kernel(), v, true));
  std::vector<NamedArg> args{{"x", k}};
  args.emplace_back("coefficients", MOKA_TRY(site.tensor(alpha, {n - 1, sum})));
  args.emplace_back("rho", MOKA_TRY(site.tensor(classic::span_of(svm.rho()))));
  args.emplace_back("counts", MOKA_TRY(site.tensor(counts)));
  if (svm.proba_size() != 0 || svm.probb_size() != 0) {
    MOKA_TRY(check("probA", svm.proba_size()));
    MOKA_TRY(check("probB", svm.probb_size()));
    args.emplace_back("prob_a", MOKA_TRY(site.tensor(classic::span_of(svm.proba()))));
    args.emplace_back("prob_b", MOKA_TRY(site.tensor(classic::span_of(svm.probb()))));
  }
  return site.classify(MOKA_TRY(site.op("ml_svm_classify", std::move(args), "vote")), std::move(classes));
}

Status import_svm(const proto::Model& model, const ImportContext& context, ir::Builder& builder, Features& features) {
  Site site = MOKA_TRY(Site::open(model, context, builder, features));
  return model.Type_case() == proto::Model::kSupportVectorRegressor
             ? import_regressor(site, model.supportvectorregressor())
             : import_classifier(site, model.supportvectorclassifier());
}

}  // namespace

ModelImporter importer_svm() {
  static constexpr int types[] = {proto::Model::kSupportVectorRegressor, proto::Model::kSupportVectorClassifier};
  return {types, import_svm, true};
}

}  // namespace moka::import
