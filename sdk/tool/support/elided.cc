// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/elided.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "sdk/tool/support/option_types.h"

namespace collet::tool {
namespace {

std::optional<ElidedChoice> choice_of(std::string_view text) {
  if (text == "refuse") return ElidedChoice{COLLET_ELIDED_REFUSE};
  if (text == "zeros") return ElidedChoice{COLLET_ELIDED_ZEROS};
  if (text == "counter") return ElidedChoice{COLLET_ELIDED_COUNTER};
  constexpr std::string_view kRandom = "random:";
  if (!text.starts_with(kRandom)) return std::nullopt;
  text.remove_prefix(kRandom.size());
  ElidedChoice choice{COLLET_ELIDED_RANDOM};
  const std::optional<uint64_t> seed = parse_whole_number(text);
  if (!seed) return std::nullopt;
  choice.seed = *seed;
  return choice;
}

std::string check(const std::string& text) {
  return choice_of(text) ? "" : "'" + text + "' is none of refuse, zeros, counter, random:SEED";
}

}  // namespace

void add_elided_option(CLI::App& verb, ElidedChoice& choice) {
  verb.add_option_function<std::string>(
          "--elided", [&choice](const std::string& text) { choice = choice_of(text).value_or(ElidedChoice{}); },
          "Constants that HLO text leaves out, {...}: refuse, zeros, random:SEED, or counter, as XLA fills them")
      ->check(CLI::Validator(check, ""))
      ->default_str(choice.how == COLLET_ELIDED_COUNTER ? "counter" : "refuse")
      ->type_name("HOW");
}

}  // namespace collet::tool
