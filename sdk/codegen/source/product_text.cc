// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/source/product_text.h"

#include <collet/types.h>

#include <algorithm>

#include "sdk/codegen/base/functions.h"
#include "sdk/codegen/matmul/blocked_loops.h"
#include "sdk/codegen/source/kernel_text.h"

namespace collet::codegen::source {
namespace {

/// $G stands before types in memory of the program, $T before types in tables.
constexpr const char* kTile =
    R"(/* The operands of a micro-kernel: c[rows, columns] (+)= a[rows, depth] * b[depth, columns]. Steps are in elements. */
struct tile {
  $Gconst char *a, *b;
  $Gchar *c;
  int64_t depth, a_step, b_step, c_step, tail, accumulate;
  $Gconst char *ahead;
  int64_t ahead_step;
  $Gconst char *start;
  int64_t segments;
  $Tint64_t *offsets;
  int64_t checked_steps;
  int64_t rows;
  $Gchar *d;
  $Gchar *const *buffers;
  $Tint64_t *position;
  int64_t row, column;
  $Gchar *total;
  int64_t total_step, is_first, is_last;
};
)";

std::string tile_of(const Language& language) {
  std::string text = kTile;
  for (const auto& [from, to] :
       {std::pair<const char*, const char*>{"$G", language.memory}, {"$T", language.in_table}}) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) text.replace(at, 2, to);
  }
  return text;
}

/// Returns the name of a field of Tile, which is also that of `struct tile`.
template <typename Field>
const char* field_name(Field Tile::* field) {
  static constexpr Tile kNames{};
  const auto at = reinterpret_cast<const char*>(&(kNames.*field)) - reinterpret_cast<const char*>(&kNames);
#define COLLET_FIELD(name) \
  if (at == static_cast<ptrdiff_t>(offsetof(Tile, name))) return #name;
  COLLET_FIELD(a)
  COLLET_FIELD(b)
  COLLET_FIELD(c)
  COLLET_FIELD(depth)
  COLLET_FIELD(a_step)
  COLLET_FIELD(b_step)
  COLLET_FIELD(c_step)
  COLLET_FIELD(tail)
  COLLET_FIELD(accumulate)
  COLLET_FIELD(ahead)
  COLLET_FIELD(ahead_step)
  COLLET_FIELD(start)
  COLLET_FIELD(segments)
  COLLET_FIELD(offsets)
  COLLET_FIELD(checked_steps)
  COLLET_FIELD(rows)
  COLLET_FIELD(d)
  COLLET_FIELD(buffers)
  COLLET_FIELD(position)
  COLLET_FIELD(row)
  COLLET_FIELD(column)
  COLLET_FIELD(total)
  COLLET_FIELD(total_step)
  COLLET_FIELD(is_first)
  COLLET_FIELD(is_last)
#undef COLLET_FIELD
  return "";
}

/// Writes a micro-kernel. The sums are an array; the rows of a tile are written out, and the loop over its columns is what compilers make
/// vectors of. Where the language has vectors, the sums are vectors, which become the array at the end.
class MicroWriter {
 public:
  MicroWriter(Unit& unit, const MicroSource& source, int64_t tail)
      : f_(unit),
        k_(source.kernel),
        epilogue_(source.epilogue ? &*source.epilogue : nullptr),
        wide_(k_.vectors * k_.lanes) {
    columns_ = std::to_string(k_.masked ? wide_ - k_.lanes + tail : wide_);
    type_ = k_.type == COLLET_TYPE_F64 ? "double" : k_.type == COLLET_TYPE_S32 ? "int32_t" : "float";
    // Sums of integers wrap around.
    sum_ = k_.type == COLLET_TYPE_S32 ? "uint32_t" : type_;
    in_vectors_ = f_.unit.language.has_vectors && k_.rows > 0 && k_.lanes > 1 && k_.lanes <= 16 && k_.packs != 2 &&
                  k_.starts == Starts::kZero;
    lanes_ = std::to_string(k_.lanes);
    vector_ = (k_.type == COLLET_TYPE_S32 ? "uint" : type_) + lanes_;
    source_ = f_.unit.pointer("const " + type_);
    target_ = f_.unit.pointer(type_);
  }

  std::string run(const std::string& name) {
    if (k_.rows == 0 && !epilogue_) return run_fold(name);
    if (k_.rows > 0) {
      f_.statement(source_ + "b = (" + source_ + ")t->b;");
      const bool has_steps = k_.rows > 1 || k_.by_depth;
      f_.statement(std::string("const int64_t depth = t->depth, ") + (has_steps ? "a_step = t->a_step, " : "") +
                   "b_step = t->b_step, c_step = t->c_step;");
      if (in_vectors_) {
        each_vector([&](const std::string& sum, int, int) { f_.statement(vector_ + " " + sum + " = 0;"); });
      } else {
        declare_sums();
        first_sums();
      }
      if (k_.segmented) {
        f_.open("for (int64_t s = 0; s < t->segments; ++s)");
        f_.statement(source_ + "a = (" + source_ + ")t->a + t->offsets[s];");
      } else {
        f_.statement(source_ + "a = (" + source_ + ")t->a;");
      }
      steps();
      if (k_.segmented) f_.close();
      if (in_vectors_) {
        declare_sums();
        each_vector([&](const std::string& sum, int r, int v) {
          f_.statement("vstore" + lanes_ + "(" + sum + ", 0, sum[" + std::to_string(r) + "] + " +
                       std::to_string(v * k_.lanes) + ");");
        });
      }
    } else {
      f_.statement("const int64_t c_step = t->c_step;");
    }
    finish();
    return f_.print("static void " + name + "(const struct tile *t)");
  }

 private:
  /// A function that adds the sums of a stored tile to its totals, see emit_fold.
  std::string run_fold(const std::string& name) {
    f_.statement("const int64_t c_step = t->c_step, total_step = t->total_step;");
    f_.statement(target_ + "const c = (" + target_ + ")t->c, *const totals = (" + target_ + ")t->total;");
    f_.open("for (int64_t r = 0; r < t->rows; ++r)");
    columns();
    f_.statement("const " + type_ + " x = c[r * c_step + j];");
    f_.statement("const " + type_ + " before = t->is_first ? 0 : totals[r * total_step + j];");
    f_.statement("const " + type_ + " sum = before + x, added = sum - before;");
    f_.statement("const " + type_ + " lost = (before - (sum - added)) + (x - added);");
    f_.statement("totals[r * total_step + j] = sum;");
    f_.statement(
        "c[r * c_step + j] = t->is_last ? sum : lost == lost ? lost : 0;");  // an infinite sum has a NaN for an error
    f_.close();
    f_.close();
    return f_.print("static void " + name + "(const struct tile *t)");
  }

  void columns() { columns(columns_); }
  void columns(const std::string& count) { f_.open("for (int64_t j = 0; j < " + count + "; ++j)"); }

  void declare_sums() { f_.statement(sum_ + " sum[" + std::to_string(k_.rows) + "][" + std::to_string(wide_) + "];"); }

  /// Calls body(name, row, number) for each vector of sums.
  template <typename Body>
  void each_vector(const Body& body) {
    for (int r = 0; r < k_.rows; ++r) {
      for (int v = 0; v < k_.vectors; ++v) body("s" + std::to_string(r) + "_" + std::to_string(v), r, v);
    }
  }

  /// A step of the depth with vectors. `count`: the number of valid columns.
  void vector_step(int count) {
    const bool is_integer = k_.type == COLLET_TYPE_S32;
    for (int v = 0; v < k_.vectors; ++v) {
      const std::string n = std::to_string(v), at = std::to_string(v * k_.lanes);
      const int rest = count - v * k_.lanes;
      std::string from = "b + " + at;
      if (rest < k_.lanes) {
        from = "last";
        f_.statement(type_ + " last[" + lanes_ + "] = {0};");
        f_.statement("for (int j = 0; j < " + std::to_string(rest) + "; ++j) last[j] = b[" + at + " + j];");
      }
      const std::string loaded = "vload" + lanes_ + "(0, " + from + ")";
      f_.statement("const " + vector_ + " y" + n + " = " +
                   (is_integer ? "as_" + vector_ + "(" + loaded + ")" : loaded) + ";");
    }
    each_vector([&](const std::string& sum, int r, int v) {
      const std::string x = (is_integer ? "(uint32_t)x" : "x") + std::to_string(r), y = "y" + std::to_string(v);
      const bool fuses = f_.unit.target.fma && !is_integer;
      f_.statement(fuses ? sum + " = fma((" + vector_ + ")" + x + ", " + y + ", " + sum + ");"
                         : sum + " += " + x + " * " + y + ";");
    });
    f_.close();
  }

  void first_sums() {
    columns(std::to_string(wide_));
    for (int r = 0; r < k_.rows; ++r) f_.statement("sum[" + std::to_string(r) + "][j] = 0;");
    f_.close();
    if (k_.starts == Starts::kZero) return;
    f_.open("if (!t->accumulate)");
    f_.statement(source_ + "const start = (" + source_ + ")t->start;");
    columns();
    for (int r = 0; r < k_.rows; ++r) {
      const std::string from = k_.starts == Starts::kRows ? "start[" + std::to_string(r) + "]" : "start[j]";
      f_.statement("sum[" + std::to_string(r) + "][j] = (" + sum_ + ")" + from + ";");
    }
    f_.close();
    f_.close();
  }

  /// The loop over the depth. Where the columns do not fill vectors, whole vectors of b are read as long as they end in b, with the
  /// begin of the next row: compilers make bad code of the rest.
  void steps() {
    if (!k_.masked) {
      f_.open("for (int64_t k = 0; k < depth; ++k, b += b_step)");
      return step(columns_);
    }
    f_.statement("int64_t k = 0;");
    const std::string beyond = std::to_string(wide_) + " - " + columns_;
    f_.open("if (b_step > 0)");
    f_.statement("const int64_t whole = depth - (" + beyond + " + b_step - 1) / b_step;");
    f_.open("for (; k < whole; ++k, b += b_step)");
    step(std::to_string(wide_));
    f_.close();
    f_.open("for (; k < depth; ++k, b += b_step)");
    step(columns_);
  }

  void step(const std::string& count) {
    for (int r = 0; r < k_.rows; ++r) {
      const std::string n = std::to_string(r);
      const std::string row = r == 0 ? "" : r == 1 ? "a_step + " : n + " * a_step + ";
      f_.statement("const " + type_ + " x" + n + " = a[" + (k_.by_depth ? "k * a_step + " + n : row + "k") + "];");
    }
    if (in_vectors_) return vector_step(std::stoi(count));
    columns(count);
    f_.statement("const " + type_ + " y = b[j];");
    for (int r = 0; r < k_.rows; ++r) {
      const std::string n = std::to_string(r), sum = "sum[" + n + "][j]", x = "x" + n;
      if (k_.packs == 2 && k_.type == COLLET_TYPE_S32) {
        // Two factors of 16 bits in each element.
        f_.statement(sum + " += (uint32_t)((int16_t)" + x + " * (int16_t)y) + (uint32_t)((" + x +
                     " >> 16) * (y >> 16));");
      } else if (k_.type == COLLET_TYPE_S32) {
        f_.statement(sum + " += (uint32_t)" + x + " * (uint32_t)y;");
      } else if (f_.unit.target.fma) {
        f_.statement(sum + " = " + f_.unit.math("fma", type_ == "double") + "(" + x + ", y, " + sum + ");");
      } else {
        f_.statement(sum + " += " + x + " * y;");
      }
    }
    f_.close();
    f_.close();
  }

  void finish() {
    const std::string& of_c = k_.rows == 0 ? source_ : target_;
    f_.statement(of_c + "const c = (" + of_c + ")t->c;");
    const std::string rows = k_.rows == 0 ? "t->rows" : std::to_string(k_.rows);
    if (k_.accumulates) {
      f_.open("if (t->accumulate)");
      f_.open("for (int64_t r = 0; r < " + rows + "; ++r)");
      columns();
      f_.statement("sum[r][j] += (" + sum_ + ")c[r * c_step + j];");
      for (int i = 0; i < 3; ++i) f_.close();
    }
    std::string target = "c";
    std::optional<KernelWriter> points;
    if (epilogue_) {
      points.emplace(f_, epilogue_->kernel);
      points->open("t->buffers");
      f_.statement(target_ + "const d = (" + target_ + ")t->d;");
      if (k_.rows > 0) f_.statement("(void)c;");
      target = "d";
    }
    f_.open("for (int64_t r = 0; r < " + rows + "; ++r)");
    f_.statement("INDEPENDENT");
    columns();
    Id value = k_.rows == 0 ? f_.value(type_, "c[r * c_step + j]", {}, Level::kPrimary, true)
                            : f_.cast(type_, f_.value(sum_, "sum[r][j]", {}, Level::kPrimary, true));
    if (epilogue_) {
      std::vector<std::string> loops;
      const size_t batch = epilogue_->kernel.loops.size() - 2;
      for (size_t l = 0; l < batch; ++l) loops.push_back("t->position[" + std::to_string(l) + "]");
      loops.insert(loops.end(), {"(t->row + r)", "(t->column + j)"});
      value = points->point(loops, epilogue_->product, value, epilogue_->value);
      const uint32_t type = epilogue_->kernel.exprs[static_cast<size_t>(epilogue_->value)].type;
      value = to_memory(f_, value, type);
      if (memory_type(type) != type_) {  // an element of the same size
        f_.statement("((" + f_.unit.pointer(memory_type(type)) + ")d)[r * c_step + j] = $a0;", {value});
        f_.close();
        f_.close();
        return;
      }
    }
    f_.statement(target + "[r * c_step + j] = $a0;", {value});
    f_.close();
    f_.close();
  }

  Function f_;
  const MicroKernel& k_;
  const Epilogue* epilogue_;
  int wide_;
  std::string columns_, type_, sum_;
  bool in_vectors_ = false;
  std::string lanes_, vector_;
  std::string source_, target_;  ///< types of pointers to elements that are read, and to those that are written
};

/// A Machine for BlockedLoops that writes C.
class LoopsWriter {
 public:
  using Table = std::vector<int64_t> BlockedProduct::*;
  /// A number, an address or a flag.
  struct Word {
    Function* f = nullptr;
    Id v = kNoId;
    Word same(int64_t x) const { return {f, f->integer(x)}; }
    bool is(int64_t x) const { return f->text_of_constant(v) == text_of_integer(x); }
    bool is_address() const { return f->type_of(v).ends_with("*"); }
    Word operator+(Word x) const {
      if (x.is(0)) return *this;
      return is(0) ? x : Word{f, f->binary(f->type_of(v), "+", v, x.v)};
    }
    Word operator-(Word x) const { return x.is(0) ? *this : Word{f, f->binary(f->type_of(v), "-", v, x.v)}; }
    Word operator+(int64_t x) const { return *this + same(x); }
    Word operator-(int64_t x) const { return *this - same(x); }
    Word operator*(int64_t x) const {
      if (is(0) || x == 0) return same(0);
      return x == 1 ? *this : Word{f, f->binary("int64_t", "*", v, same(x).v)};
    }
    Word operator/(int64_t x) const { return x == 1 ? *this : Word{f, f->binary("int64_t", "/", v, same(x).v)}; }
    Word operator%(int64_t x) const { return x == 1 ? same(0) : Word{f, f->binary("int64_t", "%", v, same(x).v)}; }
    Word operator<(Word x) const { return {f, f->binary("bool", "<", v, x.v)}; }
    Word operator>(int64_t x) const { return {f, f->binary("bool", ">", v, same(x).v)}; }
    Word operator==(int64_t x) const { return {f, f->binary("bool", "==", v, same(x).v)}; }
  };
  using Number = Word;
  using Address = Word;
  using Flag = Word;

  LoopsWriter(Unit& unit, const BlockedProduct& call, const std::vector<FunctionSource>& sources)
      : f_(unit), c_(call), sources_(sources) {}

  std::string run(const std::string& name) {
    f_.statement("struct tile t;");
    if (c_.scratch_bytes() == 0) f_.statement("(void)worker;");
    if (c_.jobs() == 1) f_.statement("(void)begin, (void)end;");
    BlockedLoops<LoopsWriter>(c_, *this).jobs(named("begin"), named("end"), named("worker"));
    return f_.print("static void " + f_.unit.part(name) + "(" + f_.unit.places("*buffers") +
                    ", int64_t begin, int64_t end, int64_t worker)");
  }

  Number number(int64_t x) { return {&f_, f_.integer(x)}; }
  Number least(Number x, Number y) {
    return {&f_, f_.value("int64_t", "$v0 < $v1 ? $v0 : $v1", {x.v, y.v}, Level::kConditional)};
  }
  Number most(Number x, Number y) {
    return {&f_, f_.value("int64_t", "$v0 < $v1 ? $v1 : $v0", {x.v, y.v}, Level::kConditional)};
  }
  Number choose(Flag which, int64_t x, int64_t y) { return choose(which, number(x), number(y)); }
  Word choose(Flag which, Word x, Word y) {
    if (is_false(which)) return y;
    return {&f_, f_.value(f_.type_of(x.v), "$c0 ? $v1 : $v2", {which.v, x.v, y.v}, Level::kConditional)};
  }
  Flag no() { return {&f_, f_.constant("bool", "false")}; }
  Flag either(Flag x, Flag y) { return {&f_, f_.value("bool", "$s0 || $s1", {x.v, y.v}, Level::kConditional)}; }
  Flag both(Flag x, Flag y) { return {&f_, f_.value("bool", "$s0 && $s1", {x.v, y.v}, Level::kConditional)}; }
  Flag flag(uint32_t i) {
    return {&f_,
            f_.value("bool", "*(" + f_.unit.pointer("const uint8_t") + ")buffers[" + std::to_string(i) + "] != 0")};
  }
  void clear_bits() {
    bits_ = f_.fresh("bits");
    f_.statement("uint32_t " + bits_ + " = 0;");
  }
  void collect_bits(Address first, Number begin, Number end) {
    const std::string i = f_.fresh("i");
    f_.open("for (int64_t " + i + " = $a0; " + i + " < $b1; ++" + i + ")", {begin.v, end.v});
    f_.statement(bits_ + " |= ((" + f_.unit.pointer("const uint32_t") + ")($a0))[" + i + "];", {first.v});
    f_.close();
  }
  Flag has_no_bits() { return {&f_, f_.value("bool", bits_ + " == 0")}; }
  Number element(Table table, Number i) { return {&f_, f_.value("int64_t", table_of(table) + "[$a0]", {i.v})}; }
  Address elements(Table table, Number i) {
    return {&f_, f_.value(f_.unit.language.in_table + std::string("int64_t *"), table_of(table) + " + $m0", {i.v},
                          Level::kSum)};
  }
  Address buffer(uint32_t i) { return {&f_, f_.value(f_.unit.pointer("char"), "buffers[" + std::to_string(i) + "]")}; }
  Address buffers(uint32_t i) {
    return {&f_, f_.value(f_.unit.places("*"), "buffers + " + std::to_string(i), {}, Level::kSum)};
  }
  template <typename Field, typename What>
  void put(Field Tile::* field, What value) {
    f_.statement(std::string("t.") + field_name(field) + " = $a0;", {value.v});
  }
  template <typename Body>
  void loop(Number begin, Number end, const Body& body) {
    const std::string i = f_.fresh("i");
    f_.open("for (int64_t " + i + " = $a0; " + i + " < $b1; ++" + i + ")", {begin.v, end.v});
    body(named(i));
    f_.close();
  }
  template <typename Body>
  void when(Flag condition, const Body& body) {
    f_.open("if ($a0)", {condition.v});
    body();
    f_.close();
  }
  void compute(Flag last_row, Flag last_column) {
    for (int r = 0; r < 2; ++r) {
      for (int k = 0; k < 2; ++k) call(c_.micro[r][k], {{last_row, r == 1}, {last_column, k == 1}});
    }
  }
  void finish(Flag is_last_block, Flag last_column) {
    for (int k = 0; k < 2; ++k) call(c_.after[k], {{is_last_block, true}, {last_column, k == 1}});
  }
  void fold(Flag last_column) {
    for (int k = 0; k < 2; ++k) call(c_.fold[k], {{last_column, k == 1}});
  }
  void pack(const std::string& name, uint32_t from, uint32_t count, Address packed, Number begin, Number end) {
    f_.open("");
    std::string places;
    for (uint32_t i = 0; i < count; ++i) places += "buffers[" + std::to_string(from + i) + "], ";
    f_.statement(f_.unit.places("places[] = {") + places + "$a0};", {packed.v});
    f_.statement(f_.unit.part(name) + "(places, $a0, $a1);", {begin.v, end.v});
    f_.close();
  }
  void copy(Address from, Address to, Number steps) {
    f_.open("");
    f_.statement(f_.unit.places("places[] = {$a0, $a1};"), {from.v, to.v});
    f_.statement(f_.unit.part(c_.copy_b) + "(places, 0, $a0);", {steps.v});
    f_.close();
  }

 private:
  Word named(const std::string& name) { return {&f_, f_.constant("int64_t", name)}; }
  bool is_false(Flag flag) const { return f_.text_of_constant(flag.v) == "false"; }

  std::string table_of(Table table) {
    std::string elements;
    for (const int64_t x : c_.*table) elements += (elements.empty() ? "" : ", ") + text_of_integer(x);
    return f_.unit.table("int64_t", elements);
  }

  /// Calls a micro-kernel where each of the flags has the value beside it.
  void call(const std::string& called, const std::vector<std::pair<Flag, bool>>& flags) {
    if (called.empty()) return;
    std::string condition;
    std::vector<Id> args;
    for (const auto& [flag, wanted] : flags) {
      if (is_false(flag)) {
        if (wanted) return;
        continue;
      }
      condition +=
          (condition.empty() ? "" : " && ") + std::string(wanted ? "" : "!") + "$p" + std::to_string(args.size());
      args.push_back(flag.v);
    }
    if (!args.empty()) f_.open("if (" + condition + ")", args);
    const auto found = std::find_if(sources_.begin(), sources_.end(), [&](const auto& s) { return s.name == called; });
    const auto& source = std::get<MicroSource>(found->body);
    const std::string name = called + (source.kernel.masked ? "_tail_" + std::to_string(c_.tail) : "");
    f_.unit.helper("struct tile", [&] { return tile_of(f_.unit.language); });
    f_.unit.helper(name, [&] { return MicroWriter(f_.unit, source, c_.tail).run(name); });
    f_.statement(name + "(&t);");
    if (!args.empty()) f_.close();
  }

  Function f_;
  const BlockedProduct& c_;
  const std::vector<FunctionSource>& sources_;
  std::string bits_;  ///< the variable in which bits are collected
};

}  // namespace

void write_product(Unit& unit, const FunctionSource& source, const std::vector<FunctionSource>& sources) {
  LoopsWriter writer(unit, std::get<BlockedProduct>(source.body), sources);
  const std::string text = writer.run(source.name);
  unit.add((source.ops.empty() ? "" : comment(source.ops)) + text);
}

}  // namespace collet::codegen::source
