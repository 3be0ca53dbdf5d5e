// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "conformance/report/bundle.h"

/// \file
/// A public list of products: bundles in a folder, checked one by one. docs/conformance_process.md describes the folder.

namespace collet::conformance {

/// A bundle of the folder with what its submitter wrote beside it: FILE.jsonl and, optional, FILE.json.
struct Submission {
  std::string file;  ///< name of the bundle within the folder
  std::string product = {}, vendor = {}, date = {},
              report = {};  ///< as submitted; `report` is a link. Empty: not stated
  std::string backend = {}, version = {}, kind = {},
              library = {};  ///< of the bundle; `kind` of the device, `library` its SHA-256
  std::string suite = {};    ///< version of the suite
  uint32_t opset = 0;
  uint64_t seed = 0;
  size_t cases = 0, waived = 0;
  std::vector<std::string> refused = {};   ///< what does not hold; empty if all does
  std::vector<std::string> good_for = {};  ///< what the bundle proves
};

/// A product: the bundles of one library on one kind of device.
struct Product {
  std::vector<Submission> submissions;
  /// What all conditions of the terms are met for: two seeds, of which one is 0, and no refused bundle.
  std::vector<std::string> listed_for;
  std::string lacks;  ///< what is missing if `listed_for` is empty
};

struct Registry {
  std::vector<Product> products;
  std::vector<Submission> refused;  ///< files that are no bundles, or do not hold
};

/// Reads and checks all bundles of a folder. Backends are not opened: whoever keeps the list runs `--verify --rerun` too.
Expected<Registry> read_registry(const std::string& folder, std::span<const Waiver> waivers);
std::string registry_text(const Registry& registry);
std::string registry_json(const Registry& registry);
std::string registry_html(const Registry& registry);

}  // namespace collet::conformance
