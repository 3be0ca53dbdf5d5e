// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <string>

#include "hlo/text/parser_impl.h"

namespace collet::hlo::text {

bool Parser::int_list(std::vector<int64_t>& out, Tok open, Tok close, Tok separator) {
  out.clear();
  if (!expect(open, " before a list of integers")) return false;
  int64_t value;
  if (!is(close)) do {
      if (!integer(value)) return false;
      out.push_back(value);
    } while (eat(separator));
  return expect(close, " after a list of integers");
}

bool Parser::dims(Dims& out) {
  if (!int_list(numbers_, Tok::LeftBrace, Tok::RightBrace, Tok::Comma)) return false;
  out = module_.dims(numbers_);
  return true;
}

bool Parser::split_numbers(std::string_view text, char separator, std::vector<int64_t>& out) {
  const char* p = text.data();
  const char* end = p + text.size();
  while (true) {
    int64_t value;
    const auto [rest, error] = std::from_chars(p, end, value);
    if (error != std::errc()) return false;
    out.push_back(value);
    if (rest == end) return true;
    if (*rest != separator) return false;
    p = rest + 1;
  }
}

// ---- windows and padding ----

bool Parser::window_sizes(std::string_view what, Dims& out) {
  numbers_.clear();
  if (is(Tok::Int)) {
    numbers_.push_back(tok_.integer);
  } else if (!is(Tok::DxD)) {
    return expected("numbers such as 3x3 for '" + std::string(what) + "'");
  } else if (!split_numbers(tok_.text, 'x', numbers_)) {
    return complain("a number of '" + std::string(what) + "' does not fit 64 bits");
  }
  out = module_.dims(numbers_);
  next();
  return true;
}

bool Parser::window(Window& out) {
  const char* begin = tok_.begin;
  if (!expect(Tok::LeftBrace, " before the window")) return false;
  const std::pair<std::string_view, Dims*> parts[] = {{"size", &out.size},
                                                      {"stride", &out.stride},
                                                      {"pad", &out.padding_low},
                                                      {"lhs_dilate", &out.base_dilation},
                                                      {"rhs_dilate", &out.window_dilation},
                                                      {"rhs_reversal", &out.reversal}};
  uint32_t seen = 0;
  while (!is(Tok::RightBrace)) {
    if (!is(Tok::AttrName))
      return expected_attribute("size=, stride=, pad=, lhs_dilate=, rhs_dilate= or rhs_reversal=");
    const auto* part =
        std::find_if(std::begin(parts), std::end(parts), [&](const auto& p) { return p.first == tok_.text; });
    if (part == std::end(parts)) {
      const std::string_view near =
          nearest_spelling(tok_.text, {"size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal"});
      return complain("a window has no '" + std::string(tok_.text) + "'" +
                      (near.empty() ? "" : "; did you mean '" + std::string(near) + "'?"));
    }
    const uint32_t bit = 1u << (part - std::begin(parts));
    if (seen & bit) return complain("'" + std::string(part->first) + "' is given twice");
    seen |= bit;
    next();
    if (part->first != "pad") {
      if (!window_sizes(part->first, *part->second)) return false;
      continue;
    }
    if (!is(Tok::Pad)) return expected("padding such as 0_0x1_1");
    std::vector<int64_t> low, high;
    for (std::string_view rest = tok_.text; !rest.empty();) {
      const std::string_view one = rest.substr(0, rest.find('x'));
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
      numbers_.clear();
      if (!split_numbers(one, '_', numbers_) || numbers_.size() != 2)
        return complain("a window is padded low_high, as in 0_0x1_1");
      low.push_back(numbers_[0]);
      high.push_back(numbers_[1]);
    }
    out.padding_low = module_.dims(low);
    out.padding_high = module_.dims(high);
    next();
  }
  for (const auto& [name, list] : parts)
    if (!list->empty() && list->size() != out.size.size())
      return complain(begin, "'" + std::string(name) + "' has " + std::to_string(list->size()) +
                                 " entries, 'size' has " + std::to_string(out.size.size()));
  return expect(Tok::RightBrace, " after the window");
}

bool Parser::is_first_of_line() const {
  const char* before = tok_.begin;
  while (before[-1] == ' ' || before[-1] == '\t' || before[-1] == '\r') --before;
  return before[-1] == '\n';
}

bool Parser::pads(Padding& out) {
  // A scalar has no dimensions to pad: "padding=" ends there, or the line does.
  if (is(Tok::Comma) || (!is(Tok::Pad) && is_first_of_line())) {
    out = {};
    return true;
  }
  if (!is(Tok::Pad)) return expected("padding such as 0_0x1_1_2");
  std::vector<int64_t> low, high, interior;
  for (std::string_view rest = tok_.text; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find('x'));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    numbers_.clear();
    if (!split_numbers(one, '_', numbers_) || numbers_.size() < 2 || numbers_.size() > 3)
      return complain("padding is written low_high or low_high_interior");
    low.push_back(numbers_[0]);
    high.push_back(numbers_[1]);
    interior.push_back(numbers_.size() == 3 ? numbers_[2] : 0);
  }
  out = {module_.dims(low), module_.dims(high), module_.dims(interior)};
  next();
  return true;
}

bool Parser::slices(SliceRanges& out) {
  if (!expect(Tok::LeftBrace, " before the ranges")) return false;
  std::vector<int64_t> start, limit, stride;
  if (!is(Tok::RightBrace)) do {
      const char* begin = tok_.begin;
      if (!int_list(numbers_, Tok::LeftSquare, Tok::RightSquare, Tok::Colon)) return false;
      if (numbers_.size() < 2 || numbers_.size() > 3)
        return complain(begin, "a range is written [start:limit] or [start:limit:stride]");
      start.push_back(numbers_[0]);
      limit.push_back(numbers_[1]);
      stride.push_back(numbers_.size() == 3 ? numbers_[2] : 1);
    } while (eat(Tok::Comma));
  out = {module_.dims(start), module_.dims(limit), module_.dims(stride)};
  return expect(Tok::RightBrace, " after the ranges");
}

// ---- dimension labels ----

bool Parser::label_part(std::string_view part, char first, char second, int64_t& first_at, int64_t& second_at,
                        Dims& spatial) {
  uint64_t seen = 0;
  size_t count = 0;
  for (char c : part) count += c != first && c != second && c != '?';
  std::vector<int64_t> at(count, -1);
  for (size_t i = 0; i < part.size(); ++i) {
    const char c = part[i];
    if (c == '?') continue;
    const auto bit = uint64_t{1} << (c - '0');
    const bool again = c == first ? first_at >= 0 : c == second ? second_at >= 0 : (seen & bit) != 0;
    if (again) return complain("dimension label '" + std::string(1, c) + "' stands twice in " + std::string(part));
    if (c == first) {
      first_at = static_cast<int64_t>(i);
    } else if (c == second) {
      second_at = static_cast<int64_t>(i);
    } else {
      seen |= bit;
      if (static_cast<size_t>(c - '0') >= count)
        return complain("spatial dimension " + std::string(1, c) + " in " + std::string(part) + ", which has " +
                        std::to_string(count));
      at[static_cast<size_t>(c - '0')] = static_cast<int64_t>(i);
    }
  }
  spatial = module_.dims(at);
  return true;
}

bool Parser::dim_labels(DimLabels& out) {
  if (!is(Tok::DimLabels)) return expected("dimension labels such as bf01_oi01->bf01");
  const std::string_view text = tok_.text;
  const size_t bar = text.find('_'), arrow = text.find("->");
  const std::string_view input = text.substr(0, bar), kernel = text.substr(bar + 1, arrow - bar - 1),
                         output = text.substr(arrow + 2);
  if (!label_part(input, 'b', 'f', out.input_batch, out.input_feature, out.input_spatial) ||
      !label_part(kernel, 'i', 'o', out.kernel_input_feature, out.kernel_output_feature, out.kernel_spatial) ||
      !label_part(output, 'b', 'f', out.output_batch, out.output_feature, out.output_spatial))
    return false;
  if (out.input_spatial.size() != out.kernel_spatial.size() || out.input_spatial.size() != out.output_spatial.size())
    return complain("input, kernel and output must have the same number of spatial dimensions, but have " +
                    std::to_string(out.input_spatial.size()) + ", " + std::to_string(out.kernel_spatial.size()) +
                    " and " + std::to_string(out.output_spatial.size()));
  out.text = module_.arena().string(text);
  next();
  return true;
}

bool Parser::precisions(Dims& out) {
  static const std::vector<std::string_view> kNames = {"default", "high", "highest"};
  if (!expect(Tok::LeftBrace, " before the precisions")) return false;
  std::vector<int64_t> list;
  if (!is(Tok::RightBrace)) do {
      if (!is(Tok::Ident)) return expected("default, high or highest");
      std::string lower(tok_.text);
      std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
      const auto found = std::find(kNames.begin(), kNames.end(), lower);
      if (found == kNames.end()) {
        const std::string_view near = nearest_spelling(lower, kNames);
        return complain(
            "there is no precision '" + std::string(tok_.text) + "'" +
            (near.empty() ? "; it is default, high or highest" : "; did you mean '" + std::string(near) + "'?"));
      }
      list.push_back(found - kNames.begin());
      next();
    } while (eat(Tok::Comma));
  out = module_.dims(list);
  return expect(Tok::RightBrace, " after the precisions");
}

}  // namespace collet::hlo::text
