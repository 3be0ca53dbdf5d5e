// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>

#include "hlo/ops/lanczos.h"
#include "hlo/stablehlo/importer.h"

// Expands CHLO's special functions into plain ops. Types narrower than f32 are computed in f32 and rounded once.

namespace collet::hlo {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Build {
  Importer& importer;
  ImportScope& scope;
};

/// A value in the function that is being built; its operators let formulas be written as in mathematics.
struct Ex {
  Build* build;
  InstrId id;

  const Shape& shape() const { return build->importer.shape_of(id); }
  Ex like(double value) const {
    const Shape to = shape();
    return {build, build->importer.emit_splat(build->scope, to, to.type(), value)};
  }
  Ex apply(Op op) const { return apply_to(op, shape()); }
  Ex apply_to(Op op, Shape to) const { return {build, build->importer.emit(build->scope, op, to, {id})}; }
  Ex apply(Op op, Ex other) const {
    const Shape to = shape();
    return {build, build->importer.emit(build->scope, op, to, {id, other.id})};
  }
};

Ex operator+(Ex a, Ex b) {
  return a.apply(Op::ADD, b);
}
Ex operator-(Ex a, Ex b) {
  return a.apply(Op::SUBTRACT, b);
}
Ex operator*(Ex a, Ex b) {
  return a.apply(Op::MULTIPLY, b);
}
Ex operator/(Ex a, Ex b) {
  return a.apply(Op::DIVIDE, b);
}
Ex operator+(Ex a, double b) {
  return a + a.like(b);
}
Ex operator-(Ex a, double b) {
  return a - a.like(b);
}
Ex operator*(Ex a, double b) {
  return a * a.like(b);
}
Ex operator/(Ex a, double b) {
  return a / a.like(b);
}
Ex operator-(double a, Ex b) {
  return b.like(a) - b;
}
Ex operator*(double a, Ex b) {
  return b.like(a) * b;
}
Ex operator/(double a, Ex b) {
  return b.like(a) / b;
}
Ex operator-(Ex a) {
  return a.apply(Op::NEGATE);
}
/// Bitwise and of predicates or integers.
Ex operator&(Ex a, Ex b) {
  return a.apply(Op::AND, b);
}
Ex operator|(Ex a, Ex b) {
  return a.apply(Op::OR, b);
}

Ex abs(Ex x) {
  return x.apply(Op::ABS);
}
Ex floor(Ex x) {
  return x.apply(Op::FLOOR);
}
Ex log(Ex x) {
  return x.apply(Op::LOG);
}
Ex log1p(Ex x) {
  return x.apply(Op::LOG_PLUS_ONE);
}
Ex exp(Ex x) {
  return x.apply(Op::EXPONENTIAL);
}
Ex sqrt(Ex x) {
  return x.apply(Op::SQRT);
}
Ex sin(Ex x) {
  return x.apply(Op::SINE);
}
Ex cos(Ex x) {
  return x.apply(Op::COSINE);
}
Ex pow(Ex x, Ex y) {
  return x.apply(Op::POWER, y);
}

Ex compare(Direction direction, Ex a, Ex b) {
  Importer& m = a.build->importer;
  auto* attrs = m.module().make<CompareAttrs>();
  attrs->direction = direction;
  attrs->type = is_integer(a.shape().type()) ? CompareType::UNSIGNED : CompareType::FLOAT;
  return {a.build, m.emit(a.build->scope, Op::COMPARE, a.shape().with_type(Type::PRED), {a.id, b.id}, attrs)};
}
Ex equal(Ex a, Ex b) {
  return compare(Direction::EQ, a, b);
}
Ex equal(Ex a, double b) {
  return equal(a, a.like(b));
}
Ex differ(Ex a, Ex b) {
  return compare(Direction::NE, a, b);
}
Ex less(Ex a, Ex b) {
  return compare(Direction::LT, a, b);
}
Ex less(Ex a, double b) {
  return less(a, a.like(b));
}
Ex select(Ex condition, Ex a, Ex b) {
  Importer& m = a.build->importer;
  const Shape to = a.shape();
  return {a.build, m.emit(a.build->scope, Op::SELECT, to, {condition.id, a.id, b.id})};
}

using Coefficients = std::span<const double>;

/// Evaluates the polynomial with these coefficients, highest power first.
Ex polynomial(Ex x, Coefficients coefficients) {
  Ex sum = x.like(coefficients[0]);
  for (double c : coefficients.subspan(1)) sum = sum * x + c;
  return sum;
}

/// Evaluates a sum of Chebyshev polynomials on [-2, 2] by Clenshaw's algorithm, highest degree first.
Ex chebyshev(Ex x, Coefficients coefficients) {
  Ex b0 = x.like(0), b1 = b0, b2 = b0;
  for (double c : coefficients) {
    b2 = b1;
    b1 = b0;
    b0 = x * b1 - b2 + c;
  }
  return (b0 - b2) * 0.5;
}

// The complementary error function: 1 - erf(x) for |x| below 1, otherwise exp(-x^2) times a rational function
// (coefficients from Cephes).

Ex erf_small_f64(Ex x) {
  static constexpr double kT[] = {9.60497373987051638749E0, 9.00260197203842689217E1, 2.23200534594684319226E3,
                                  7.00332514112805075473E3, 5.55923013010394962768E4};
  static constexpr double kU[] = {1.0,
                                  3.35617141647503099647E1,
                                  5.21357949780152679795E2,
                                  4.59432382970980127987E3,
                                  2.26290000613890934246E4,
                                  4.92673942608635921086E4};
  const Ex square = x * x;
  return x * polynomial(square, kT) / polynomial(square, kU);
}

Ex erf_small_f32(Ex x) {
  static constexpr double kT[] = {7.853861353153693E-5,  -8.010193625184903E-4, 5.188327685732524E-3,
                                  -2.685381193529856E-2, 1.128358514861418E-1,  -3.761262582423300E-1,
                                  1.128379165726710E+0};
  return x * polynomial(x * x, kT);
}

/// Returns erfc for |x| >= 1. `magnitude` is |x|, `z` is -x^2.
Ex erfc_tail_f64(Ex magnitude, Ex z) {
  static constexpr double kP[] = {2.46196981473530512524E-10, 5.64189564831068821977E-1, 7.46321056442269912687E0,
                                  4.86371970985681366614E1,   1.96520832956077098242E2,  5.26445194995477358631E2,
                                  9.34528527171957607540E2,   1.02755188689515710272E3,  5.57535335369399327526E2};
  static constexpr double kQ[] = {1.0,
                                  1.32281951154744992508E1,
                                  8.67072140885989742329E1,
                                  3.54937778887819891062E2,
                                  9.75708501743205489753E2,
                                  1.82390916687909736289E3,
                                  2.24633760818710981792E3,
                                  1.65666309194161350182E3,
                                  5.57535340817727675546E2};
  static constexpr double kR[] = {5.64189583547755073984E-1, 1.27536670759978104416E0, 5.01905042251180477414E0,
                                  6.16021097993053585195E0,  7.40974269950448939160E0, 2.97886665372100240670E0};
  static constexpr double kS[] = {1.0,
                                  2.26052863220117276590E0,
                                  9.39603524938001434673E0,
                                  1.20489539808096656605E1,
                                  1.70814450747565897222E1,
                                  9.60896809063285878198E0,
                                  3.36907645100081516050E0};
  const Ex scale = exp(z);
  const Ex near = scale * polynomial(magnitude, kP) / polynomial(magnitude, kQ);
  const Ex far = scale * polynomial(magnitude, kR) / polynomial(magnitude, kS);
  return select(less(magnitude, 8), near, far);
}

Ex erfc_tail_f32(Ex magnitude, Ex z) {
  static constexpr double kP[] = {2.326819970068386E-2,  -1.387039388740657E-1, 3.687424674597105E-1,
                                  -5.824733027278666E-1, 6.210004621745983E-1,  -4.944515323274145E-1,
                                  3.404879937665872E-1,  -2.741127028184656E-1, 5.638259427386472E-1};
  static constexpr double kR[] = {-1.047766399936249E+1, 1.297719955372516E+1, -7.495518717768503E+0,
                                  2.921019019210786E+0,  -1.015265279202700E0, 4.218463358204948E-1,
                                  -2.820767439740514E-1, 5.641895067754075E-1};
  const Ex inverse = -1.0 / z;
  const Ex fraction = select(less(magnitude, 2), polynomial(inverse, kP), polynomial(inverse, kR));
  return exp(z) * (1.0 / magnitude) * fraction;
}

Ex erfc(Ex x) {
  const bool wide = x.shape().type() == Type::F64;
  const Ex magnitude = abs(x), z = -(x * x);
  const Ex tail = wide ? erfc_tail_f64(magnitude, z) : erfc_tail_f32(magnitude, z);
  // Beyond this limit exp(z) underflows to zero, while the rational functions may overflow.
  const double vanishes = wide ? 7.09782712893383996843E2 : 88.72283905206835;
  const Ex upper = select(less(z, -vanishes), x.like(0), tail);
  const Ex large = select(less(x, 0), 2.0 - upper, upper);
  return select(less(magnitude, 1), 1.0 - (wide ? erf_small_f64(x) : erf_small_f32(x)), large);
}

// The inverse error function by Giles: a polynomial of w = -log(1 - x^2) near zero, and of sqrt(w) farther out.

Ex erf_inv_f32(Ex x, Ex w) {
  static constexpr double kNear[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                     -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
  static constexpr double kFar[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                                    -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
  return x * select(less(w, 5), polynomial(w - 2.5, kNear), polynomial(sqrt(w) - 3, kFar));
}

Ex erf_inv_f64(Ex x, Ex w) {
  static constexpr double kNear[] = {
      -3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18,  1.115787767802518096e-17,
      -1.333171662854620906e-16,  2.0972767875968561637e-17,  6.6376381343583238325e-15,  -4.0545662729752068639e-14,
      -8.1519341976054721522e-14, 2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
      1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
      -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352,   -0.00074070253416626697512,
      -0.0060336708714301490533,  0.24015818242558961693,     1.6536545626831027356};
  static constexpr double kMiddle[] = {
      2.2137376921775787049e-09,  9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
      1.5027403968909827627e-06,  -4.013867526981545969e-06, 2.9234449089955446044e-06,  1.2475304481671778723e-05,
      -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05,  -0.0003550375203628474796,
      0.00095328937973738049703,  -0.0016882755560235047313, 0.0024914420961078508066,   -0.0037512085075692412107,
      0.005370914553590063617,    1.0052589676941592334,     3.0838856104922207635};
  static constexpr double kFar[] = {-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
                                    -3.7894654401267369937e-09, 7.6157012080783393804e-09,  -1.4960026627149240478e-08,
                                    2.9147953450901080826e-08,  -6.7711997758452339498e-08, 2.2900482228026654717e-07,
                                    -9.9298272942317002539e-07, 4.5260625972231537039e-06,  -1.9681778105531670567e-05,
                                    7.5995277030017761139e-05,  -0.00021503011930044477347, -0.00013871931833623122026,
                                    1.0103004648645343977,      4.8499064014085844221};
  const Ex root = sqrt(w);
  const Ex outer = select(less(w, 16), polynomial(root - 3.25, kMiddle), polynomial(root - 5, kFar));
  return x * select(less(w, 6.25), polynomial(w - 3.125, kNear), outer);
}

Ex erf_inv(Ex x) {
  const Ex w = -log1p(x * -x);
  const Ex inside = x.shape().type() == Type::F64 ? erf_inv_f64(x, w) : erf_inv_f32(x, w);
  return select(equal(abs(x), 1), x * kInf, inside);
}

/// Returns exp(-|x|) I1(x) by Chebyshev sums in x up to 8, and in 1/x beyond (coefficients from Cephes).
Ex bessel_i1e(Ex x) {
  static constexpr double kNear[] = {
      2.77791411276104639959E-18, -2.11142121435816608115E-17, 1.55363195773620046921E-16, -1.10559694773538630805E-15,
      7.60068429473540693410E-15, -5.04218550472791168711E-14, 3.22379336594557470981E-13, -1.98397439776494371520E-12,
      1.17361862988909016308E-11, -6.66348972350202774223E-11, 3.62559028155211703701E-10, -1.88724975172282928790E-9,
      9.38153738649577178388E-9,  -4.44505912879632808065E-8,  2.00329475355213526229E-7,  -8.56872026469545474066E-7,
      3.47025130813767847674E-6,  -1.32731636560394358279E-5,  4.78156510755005422638E-5,  -1.61760815825896745588E-4,
      5.12285956168575772895E-4,  -1.51357245063125314899E-3,  4.15642294431288815669E-3,  -1.05640848946261981558E-2,
      2.47264490306265168283E-2,  -5.29459812080949914269E-2,  1.02643658689847095384E-1,  -1.76416518357834055153E-1,
      2.52587186443633654823E-1};
  static constexpr double kFar[] = {
      7.51729631084210481353E-18,  4.41434832307170791151E-18,  -4.65030536848935832153E-17,
      -3.20952592199342395980E-17, 2.96262899764595013876E-16,  3.30820231092092828324E-16,
      -1.88035477551078244854E-15, -3.81440307243700780478E-15, 1.04202769841288027642E-14,
      4.27244001671195135429E-14,  -2.10154184277266431302E-14, -4.08355111109219731823E-13,
      -7.19855177624590851209E-13, 2.03562854414708950722E-12,  1.41258074366137813316E-11,
      3.25260358301548823856E-11,  -1.89749581235054123450E-11, -5.58974346219658380687E-10,
      -3.83538038596423702205E-9,  -2.63146884688951950684E-8,  -2.51223623787020892529E-7,
      -3.88256480887769039346E-6,  -1.10588938762623716291E-4,  -9.76109749136146840777E-3,
      7.78576235018280120474E-1};
  // f32 needs fewer terms, so each list is evaluated from the first term that changes the result.
  const bool wide = x.shape().type() == Type::F64;
  const Ex z = abs(x);
  const Ex near = z * chebyshev(z * 0.5 - 2, Coefficients(kNear).subspan(wide ? 0 : 12));
  const Ex far = chebyshev(32.0 / z - 2, Coefficients(kFar).subspan(wide ? 0 : 18)) / sqrt(z);
  return x.apply(Op::SIGN) * select(compare(Direction::LE, z, z.like(8)), near, far);
}

// The gamma family: Lanczos' approximation, Euler's reflection below 1/2. The pass refine_functions adds what holds near the zeros.

Ex lgamma(Ex x) {
  const Ex reflects = less(x, 0.5);
  const Ex z = select(reflects, -x, x - 1);
  Ex a = x.like(lanczos::kBase);
  for (size_t i = 0; i < lanczos::kTerms.size(); ++i) a = a + lanczos::kTerms[i] / (z + static_cast<double>(i + 1));
  const double shift = lanczos::kG + 0.5;
  const Ex t = z.like(shift) + z;
  const Ex log_t = z.like(std::log(shift)) + log1p(z / shift);
  // Computes (z + 1/2) log t - t in an order in which a large t does not overflow.
  const Ex r = (z + 0.5 - t / log_t) * log_t;
  const Ex above = z.like((std::log(2.0) + std::log(std::numbers::pi)) / 2) + r + log(a);

  // Reflection: log(pi) - lgamma(1 - x) - log|sin(pi x)|. The sine is computed from the distance to the nearest
  // integer, which is exact.
  const Ex magnitude = abs(x);
  const Ex fraction = magnitude - floor(magnitude);
  const Ex distance = select(less(fraction.like(0.5), fraction), 1.0 - fraction, fraction);
  const Ex log_sin = log(sin(std::numbers::pi * distance));
  const Ex reflected = std::log(std::numbers::pi) - log_sin - above;
  const Ex finite = log_sin.apply_to(Op::IS_FINITE, x.shape().with_type(Type::PRED));
  const Ex result = select(reflects, select(finite, reflected, -log_sin), above);
  return select(equal(magnitude, kInf), x.like(kInf), result);
}

Ex digamma(Ex x) {
  const Ex reflects = less(x, 0.5);
  const Ex z = select(reflects, -x, x - 1);
  Ex a = x.like(lanczos::kBase), slope = x.like(0);
  for (size_t i = 0; i < lanczos::kTerms.size(); ++i) {
    const Ex term = z + static_cast<double>(i + 1);
    slope = slope - lanczos::kTerms[i] / (term * term);
    a = a + lanczos::kTerms[i] / term;
  }
  const double shift = lanczos::kG + 0.5;
  const Ex t = z.like(shift) + z;
  const Ex log_t = z.like(std::log(shift)) + log1p(z / shift);
  const Ex above = log_t + slope / a - lanczos::kG / t;

  // Reflection: digamma(1 - x) - pi cot(pi x), with the angle reduced to [-pi/2, pi/2] first.
  const Ex angle = std::numbers::pi * (x + abs(floor(x + 0.5)));
  const Ex reflected = above - std::numbers::pi * cos(angle) / sin(angle);
  const Ex pole = compare(Direction::LE, x, x.like(0)) & equal(x, floor(x));
  return select(pole, x.like(kNan), select(reflects, reflected, above));
}

/// Hurwitz' zeta function: ten powers, and twelve terms of the Euler-Maclaurin remainder (Johansson, formula 5).
Ex zeta(Ex x, Ex q) {
  static constexpr double kBernoulli[] = {-7.1661652561756670113e18,
                                          1.8152105401943546773e17,
                                          -4.5979787224074726105e15,
                                          1.1646782814350067249e14,
                                          -2.950130727918164224e12,
                                          7.47242496e10,
                                          -1.8924375803183791606e9,
                                          47900160.0,
                                          -1209600.0,
                                          30240.0,
                                          -720.0};
  const Ex minus_x = -x;
  Ex at = q, powers = pow(q, minus_x);
  for (int i = 0; i < 9; ++i) {
    at = at + 1;
    powers = powers + pow(at, minus_x);
  }
  at = at + 1;
  const Ex last = pow(at, minus_x);
  const Ex integral = last * at / (x - 1);
  const Ex inverse_square = 1.0 / (at * at);
  Ex sum = x.like(0);
  double step = 22;
  for (double c : kBernoulli) {
    sum = (x + step) * (x + (step - 1)) * (inverse_square * (sum + 1 / c));
    step -= 2;
  }
  const Ex tail = last * (x / at * (x.like(1.0 / 12) + sum) + 0.5);
  const double smallest = x.shape().type() == Type::F64 ? std::numeric_limits<double>::denorm_min()
                                                        : std::numeric_limits<float>::denorm_min();
  // Where the last power is 0, factors of the tail may be infinite.
  const Ex negligible = compare(Direction::LE, abs(last), abs(powers) * smallest);
  Ex out = select(negligible, powers, powers + integral + tail);

  const Ex whole = equal(x, floor(x));
  const Ex not_above = compare(Direction::LE, q, q.like(0));
  const Ex nan = x.like(kNan), inf = x.like(kInf);
  out = select(less(x, 1), nan, out);
  out = select(not_above & differ(x, floor(x)), nan, out);
  const Ex even = whole & equal(x.apply(Op::REMAINDER, x.like(2)), 0);
  out = select(not_above & equal(q, floor(q)), select(even, inf, nan), out);
  return select(equal(x, 1), inf, out);
}

Ex polygamma(Ex n, Ex x) {
  const Ex sign = n.apply(Op::REMAINDER, n.like(2)) * 2 - 1;
  const Ex next = n + 1;
  const Ex higher = sign * exp(lgamma(next)) * zeta(next, x);
  const Ex natural = equal(n, floor(n)) & compare(Direction::GE, n, n.like(0));
  return select(natural, select(equal(n, 0), digamma(x), higher), x.like(kNan));
}

/// Returns the next representable number from x towards y, by adding one to or subtracting one from the bits as a sign
/// and magnitude.
Ex next_after(Ex x, Ex y) {
  const Shape shape = x.shape();
  const int bits = type_info(shape.type()).bits;
  const Type type = bits == 64 ? Type::U64 : bits == 32 ? Type::U32 : bits == 16 ? Type::U16 : Type::U8;
  const Shape whole = shape.with_type(type);
  const Ex from = x.apply_to(Op::BITCAST_CONVERT, whole), to = y.apply_to(Op::BITCAST_CONVERT, whole);
  const Ex mark = from.like(std::ldexp(1.0, bits - 1)), rest = mark.apply(Op::NOT);
  const Ex one = from.like(1);
  const Ex shrinks = less(to & rest, from & rest) | differ(from & mark, to & mark);
  Ex out = select(shrinks, from - one, from + one);
  out = select(equal(x, 0), (to & mark) | one, out);
  out = select(equal(x, y), to, out);
  const Ex nan = differ(x, x) | differ(y, y);
  return select(nan, x.like(kNan), out.apply_to(Op::BITCAST_CONVERT, shape));
}

Expected<std::vector<Ex>> operands(Build& build, const mlir::Op& op, size_t count) {
  Importer& m = build.importer;
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  if (!is_float(shape.type()) || type_info(shape.type()).bits < 16) {
    Status status = m.fail(op, "is known for numbers of 16, 32 and 64 bits");
    return unimplemented(status.message());
  }
  std::vector<Ex> out;
  for (size_t i = 0; i < count; ++i) {
    COLLET_ASSIGN(InstrId x, m.value(build.scope, op, i));
    if (!op.name.starts_with("chlo.broadcast_") && !m.shape_of(x).same_dims(shape))
      return m.fail(op, "its operands and result differ in shape");
    if (count == 2) {
      COLLET_ASSIGN(x, broadcast_operand(m, build.scope, op, x, shape));
    }
    if (m.shape_of(x).type() != shape.type()) return m.fail(op, "operands and result must be of one type");
    out.push_back({&build, x});
  }
  return out;
}

Ex converted(Ex x, Type type) {
  const Shape to = x.shape().with_type(type);
  return x.shape().type() == type ? x : x.apply_to(Op::CONVERT, to);
}

template <Ex (*kFunction)(Ex)>
Status unary(Importer& m, ImportScope& scope, const mlir::Op& op) {
  Build build{m, scope};
  COLLET_ASSIGN(std::vector<Ex> x, operands(build, op, 1));
  const Type type = x[0].shape().type();
  const Type in = type == Type::F64 ? type : Type::F32;
  return m.define(scope, op, converted(kFunction(converted(x[0], in)), type).id);
}

template <Ex (*kFunction)(Ex, Ex)>
Status binary(Importer& m, ImportScope& scope, const mlir::Op& op) {
  Build build{m, scope};
  COLLET_ASSIGN(std::vector<Ex> x, operands(build, op, 2));
  const Type type = x[0].shape().type();
  const Type in = type == Type::F64 ? type : Type::F32;
  return m.define(scope, op, converted(kFunction(converted(x[0], in), converted(x[1], in)), type).id);
}

/// Translates next_after. It works on the bits, so it is not computed in a wider type.
Status step(Importer& m, ImportScope& scope, const mlir::Op& op) {
  Build build{m, scope};
  COLLET_ASSIGN(std::vector<Ex> x, operands(build, op, 2));
  return m.define(scope, op, next_after(x[0], x[1]).id);
}

}  // namespace

std::span<const ImportRow> import_chlo_math_rows() {
  static constexpr ImportRow kRows[] = {
      {"chlo.bessel_i1e", unary<bessel_i1e>},
      {"chlo.broadcast_next_after", step},
      {"chlo.broadcast_polygamma", binary<polygamma>},
      {"chlo.broadcast_zeta", binary<zeta>},
      {"chlo.digamma", unary<digamma>},
      {"chlo.erf_inv", unary<erf_inv>},
      {"chlo.erfc", unary<erfc>},
      {"chlo.lgamma", unary<lgamma>},
      {"chlo.next_after", step},
      {"chlo.polygamma", binary<polygamma>},
      {"chlo.zeta", binary<zeta>},
  };
  return kRows;
}

}  // namespace collet::hlo
