// SPDX-License-Identifier: Apache-2.0
#include "moka/rates.h"

#include <fmt/format.h>

#include <memory>

#include "arguments.h"
#include "command.h"
#include "io/table.h"
#include "json.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

struct RatesOptions {
  std::string file, device;
  int threads = 0;
  bool known = false, json = false;
};

std::string per_second(double v, std::string_view unit) {
  return v > 0 ? fmt::format("{} {}", format_number(v / 1e9), unit) : "";
}

std::string human(const MachineRates& rates) {
  io::Table table({{"device", io::Align::left},
                   {"fp32", io::Align::right},
                   {"fp16", io::Align::right},
                   {"memory", io::Align::right},
                   {"submission", io::Align::right},
                   {"transfer", io::Align::right},
                   {"of", io::Align::right}});
  for (const UnitRates& u : rates.units)
    table.add_row({u.device, per_second(u.fp32, "GF/s"), per_second(u.fp16, "GF/s"), per_second(u.bytes, "GB/s"),
                   u.launch > 0 ? format_seconds(u.launch) : "", u.transfer > 0 ? format_seconds(u.transfer) : "",
                   per_second(u.transfer_bytes, "GB/s")});
  std::string out = table_text(table) + "\n";
  for (const UnitRates& u : rates.units)
    out += fact(u.device, u.description + (u.date.empty() ? "" : ", measured " + u.date) +
                              (u.disturbed ? ", disturbed by other work" : ""));
  for (const std::string& remark : rates.remarks) out += fact("remark", remark);
  return out + fact("file", rates.file.empty() ? "none: rates are off" : rates.file);
}

MachineRates rates_of(const RatesOptions& options) {
  try {
    if (options.known) return read_rates(options.file, options.threads, options.device);
    note("rates", "measuring takes a second or two for each unit");
    return measure_rates(options.file, options.threads, options.device);
  } catch (const Exception& e) {
    if (e.kind() == ErrorKind::not_found && !options.device.empty()) throw UsageError(e.what());
    throw;
  }
}

Json machine(const MachineRates& rates) {
  Json json{{"file", rates.file}, {"units", Json::array()}, {"remarks", rates.remarks}};
  for (const UnitRates& u : rates.units)
    json["units"].push_back({{"device", u.device},
                             {"unit", u.unit},
                             {"description", u.description},
                             {"fp32", u.fp32},
                             {"fp16", u.fp16},
                             {"bytesPerSecond", u.bytes},
                             {"launchSeconds", u.launch},
                             {"transferSeconds", u.transfer},
                             {"transferBytesPerSecond", u.transfer_bytes},
                             {"measured", u.date},
                             {"disturbed", u.disturbed}});
  return json;
}

}  // namespace

Command add_rates(Arguments parent) {
  auto options = std::make_shared<RatesOptions>();
  Arguments app = parent.add_subcommand("rates", "Measure the speed of each unit of this machine");
  app.add_option("--rates", options->file,
                 "The file for the rates, default for the user's own, or off\n(default: $MOKA_RATES, else default)")
      .option_text("FILE");
  app.add_option("--device", options->device,
                 "The CPU and this device (default: the CPU and each GPU; no drivers that compute on the CPU)")
      .option_text("NAME");
  app.add_option("--threads", options->threads, "Threads of one prediction (default: one for each core)")
      .check(whole_number(1, 1024))
      .option_text("N");
  app.add_flag("--known", options->known, "Measure nothing, show what the file has");
  const auto outputs = Outputs::of(app);
  app.add_flag("--json", options->json, "Answer in JSON, in bytes, operations and seconds");
  app.footer(
      "Plans for several units use these rates, and estimates where there are none.\n"
      "Example: moka rates");
  return {app, "moka rates",
          [options, outputs] {
            if (!options->known) outputs->clear_place_of_cache(options->file, "MOKA_RATES", FileKind::rates);
            const MachineRates rates = rates_of(*options);
            print(options->json ? rendered(machine(rates)) : human(rates));
            return 0;
          },
          outputs};
}

}  // namespace moka::cli
