// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "moka/inspection.h"
#include "options.h"
#include "view/document.h"
#include "view/http.h"

namespace moka::cli {

/// Answers the page's questions about one model; docs/viewer.md lists them.
class ViewService {
 public:
  /// Call before the process has threads.
  ViewService(LoadOptions load, const Inspection& inspection, Json document);
  ~ViewService();

  /// Bad requests and models that cannot run give {"error"} with status 400. Thread-safe.
  HttpResponse answer(const HttpRequest& request);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Serves the page until the process ends. Prints its address, as {"address"} if `json`, and opens it in a browser if
/// `open`.
int serve_view(const LoadOptions& load, const Inspection& inspection, Json document, uint16_t port, bool open,
               bool json);

}  // namespace moka::cli
