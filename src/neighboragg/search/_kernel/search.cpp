// The exact nearest rows of every class.
//
// A product in single precision is fast and wrong in the last digits; distances in double precision are right and
// slow. So the product only proposes, and what it proposes is proved. For a panel of reference rows and a tile of
// queries, which stay in cache, long ones a chunk of features at a time:
//
//   1. product      approximate[row][query] = |y|² - 2 x·y, the squared distance less |x|², which is the same for all
//                   rows; one fused multiply-add for each feature, many rows and queries held in registers.
//   2. selection    the smallest values of every query so far, as sorted lists; one vector holds the same place in the
//                   lists of several queries, so that one pass inserts a value into all of them.
//   3. refinement   when a class is complete: distances of the proposed rows by direct difference in double precision,
//                   in one defined order of summation (see `squared`), which NumPy and every processor repeat bit by
//                   bit; ordered by (distance, id).
//   4. certificate  a bound on the rounding errors of the product: if the first value that was not proposed is larger
//                   than the K-th neighbor's by more than that, no other row can be as near (see `limit_of`).
//   5. widening     otherwise (ties, copies, extreme values): every row of the class that the bound cannot exclude is
//                   refined.
//
// Where rows lie close to a space of fewer dimensions, the table holds them projected on it, and the product is so much
// shorter: a projection brings no two rows farther apart, so that what it excludes is too far away in truth as well.
//
// So the result is a function of the data alone: not of the processor, the tile, the panel, the number of queries in a
// call or of threads. A single query takes the same steps with vectors across rows instead of queries.
//
// The file is compiled once for each instruction set, each time into a library of its own; vectors are those of GCC and
// Clang, as wide as the set allows. Nothing here calls another library but for memory, and no state outlives a call.

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(_WIN32)
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace {

typedef int64_t i64;

#if defined(__AVX512F__)
constexpr int LANES = 16, TILE_ROWS = 12;
#define ONE_PLACE_ON 31, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
#elif defined(__AVX2__)
constexpr int LANES = 8, TILE_ROWS = 6;
#define ONE_PLACE_ON 15, 0, 1, 2, 3, 4, 5, 6
#else
constexpr int LANES = 4, TILE_ROWS = 6;
#define ONE_PLACE_ON 7, 0, 1, 2
#endif
constexpr int TILE_VECTORS = 2;  // with TILE_ROWS: as many sums as registers, less those for the factors
constexpr int TILE_QUERIES = TILE_VECTORS * LANES;
constexpr int DOUBLE_LANES = LANES / 2;
constexpr int STRIP = LANES < 8 ? LANES : 8;  // rows in a vector where a vector holds rows

constexpr int QUERIES = 32;     // of a tile of queries, which is stored in strips of TILE_QUERIES
constexpr int GROUP = 16;       // tiles of queries at most that a panel of rows is multiplied with
constexpr i64 LARGEST_GROUP = 1 << 21;  // numbers in the queries of a group of more than four tiles
constexpr int ROWS = 24;        // of a block of the table, which is stored feature by feature
constexpr int PANEL = 8;        // blocks: some features of them and all sums of a group stay in the second cache
constexpr int CHUNK = 144;      // features at most that are summed up at a time: those of a block and a strip stay in
                                // the innermost cache, and shorter sums have smaller errors
constexpr int MANY_FEATURES = 128;  // beyond it errors are larger, and two more candidates are kept to tell rows apart
constexpr int LARGEST_K = 64;   // beyond it, inserting into sorted lists is no longer the way
constexpr int LONGEST = LARGEST_K + 8;  // of the lists
constexpr int LONGEST_SIDE_BY_SIDE = 13;  // longer lists of a tile are kept for each query by itself
constexpr int LARGEST_AXES = 64;  // of a projection; Python has the same number
constexpr int SINGLE_PANEL = 2 * ROWS;  // blocks that one query is multiplied with before their values are selected
constexpr int FEW = 8;          // up to this many queries are searched one by one, as a tile would be mostly empty

constexpr double UNIT_ROUNDOFF = 0x1p-24;
constexpr double SMALLEST_SINGLE = 0x1p-126;
constexpr double PROJECTION_ERROR = 1e-11;  // relative; of thousands of features
constexpr double LARGEST_SINGLE = 1e15;  // sums of squares stay finite in single precision
constexpr float NONE = __builtin_inff();

typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));
typedef float Strip __attribute__((vector_size(4 * STRIP)));
typedef double Doubles __attribute__((vector_size(8 * DOUBLE_LANES)));
typedef float HalfFloats __attribute__((vector_size(4 * DOUBLE_LANES)));

// Before loops over vectors that are meant for registers: GCC keeps them in memory if it unrolls too late.
#define UNROLLED _Pragma("GCC unroll 64")

template <typename Vector, typename Scalar> inline Vector load(const Scalar *from) {
    Vector x;
    memcpy(&x, from, sizeof x);
    return x;
}

template <typename Vector, typename Scalar> inline void store(Scalar *to, Vector x) { memcpy(to, &x, sizeof x); }

// a · b + c. Fused where the processor can: the product is only a proposal, unlike the refinement, for which the
// compiler is told to fuse nothing.
inline Floats multiply_add(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
    return (Floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (Floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
    return (Floats)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

// Where a < b: a bit for each lane.
inline unsigned less_bits(Floats a, Floats b) {
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ);
#elif defined(__AVX2__)
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_LT_OQ));
#elif defined(__SSE2__)
    return (unsigned)_mm_movemask_ps(_mm_cmplt_ps((__m128)a, (__m128)b));
#else
    const Ints less = a < b;
    unsigned bits = 0;
    for (int lane = 0; lane < LANES; lane++) bits |= (unsigned)(less[lane] & 1) << lane;
    return bits;
#endif
}

// Every value one lane on; the first comes from the last lane of another vector.
template <typename Vector> inline Vector one_place_on(Vector own, Vector last) {
#if defined(__clang__)
    return __builtin_shufflevector(own, last, ONE_PLACE_ON);
#else
    return __builtin_shuffle(own, last, Ints{ONE_PLACE_ON});
#endif
}

inline double clipped(double x, double most) { return x > most ? most : x < -most ? -most : x; }
inline i64 smaller(i64 a, i64 b) { return a < b ? a : b; }
inline i64 larger(i64 a, i64 b) { return a > b ? a : b; }
inline i64 rounded_up(i64 a, i64 step) { return (a + step - 1) / step * step; }

}  // namespace

// The reference rows. Python has the same structure, field by field.
struct Index {
    i64 n_rows, n_features, n_classes;
    i64 is_double;         // whether rows are of double precision, else single
    const void *rows;      // n_rows × n_features, by (class, id)
    const float *table;    // blocks × (n_axes + 1) × ROWS: -2y and |y|² in the frame, zeros after the last row
    const i64 *ids;        // n_rows: the id of each row
    const i64 *starts;     // n_classes + 1: where the rows of each class begin
    const double *center;  // n_features; with the scale, the frame in which single precision is accurate
    double scale;
    const double *axes;    // n_features × n_axes, orthonormal: what the table is projected on; null for no projection
    i64 n_axes;            // features of the table, n_features where it is not projected
};

struct Task {
    const Index *index;
    i64 n_queries;
    const double *queries;  // n_queries × n_features
    const i64 *hidden;      // position of the row that each query must not find, or -1; may be null
    i64 k;
    double *distances;      // n_queries × n_classes × k; infinity where a class has fewer rows
    i64 *ids;               // the same; -1 where a class has fewer rows
};

namespace {

// ---------------------------------------------------------------------------------------------------- 1. the product

i64 n_chunks(i64 width) { return (width + CHUNK - 1) / CHUNK; }
i64 chunk_of(i64 width) { return (width + n_chunks(width) - 1) / n_chunks(width); }

// Tiles of a group: fewer of very long queries, which would take much memory.
i64 group_of(i64 width) { return larger(4, smaller(GROUP, LARGEST_GROUP / (QUERIES * width))); }

// One register tile: TILE_ROWS rows and TILE_VECTORS vectors of queries over some features, added to what is there or
// in its place.
template <bool ADD> void tile(const float *table, const float *queries, i64 n_features, float *out) {
    Floats sum[TILE_ROWS][TILE_VECTORS];
    UNROLLED for (int r = 0; r < TILE_ROWS; r++)
        UNROLLED for (int v = 0; v < TILE_VECTORS; v++) sum[r][v] = Floats{};
    for (i64 j = 0; j < n_features; j++, table += ROWS, queries += TILE_QUERIES) {
        Floats x[TILE_VECTORS];
        UNROLLED for (int v = 0; v < TILE_VECTORS; v++) x[v] = load<Floats>(queries + v * LANES);
        UNROLLED for (int r = 0; r < TILE_ROWS; r++) {
            const Floats y = table[r] - Floats{};  // in all lanes; less zero, as that is free and adding it is not
            UNROLLED for (int v = 0; v < TILE_VECTORS; v++) sum[r][v] = multiply_add(y, x[v], sum[r][v]);
        }
    }
    UNROLLED for (int r = 0; r < TILE_ROWS; r++)
        UNROLLED for (int v = 0; v < TILE_VECTORS; v++) {
            float *to = out + r * QUERIES + v * LANES;
            store(to, ADD ? load<Floats>(to) + sum[r][v] : sum[r][v]);
        }
}

// out[row][query] of some blocks of the table and one tile of queries: the chunk of features from `first` on. Its part
// of a strip of queries, which is read most often, stays in the innermost cache.
void product(const float *table, const float *queries, i64 n_blocks, i64 width, i64 first, float *out) {
    const auto tile_of = first ? tile<true> : tile<false>;
    const i64 n_features = smaller(chunk_of(width), width - first);
    for (int left = 0; left < QUERIES; left += TILE_QUERIES)
        for (i64 b = 0; b < n_blocks; b++)
            for (int top = 0; top < ROWS; top += TILE_ROWS)
                tile_of(table + (b * width + first) * ROWS + top, queries + left * width + first * TILE_QUERIES,
                        n_features, out + (b * ROWS + top) * QUERIES + left);
}

// out[row] of one query, for BLOCKS blocks of the table, read once from front to back.
template <int BLOCKS> inline void product_of_blocks(const float *table, const float *query, i64 width, float *out) {
    constexpr int STRIPS = ROWS / STRIP;
    const i64 chunk = chunk_of(width);
    Strip total[BLOCKS][STRIPS], sum[BLOCKS][STRIPS];
    UNROLLED for (int b = 0; b < BLOCKS; b++)
        UNROLLED for (int s = 0; s < STRIPS; s++) total[b][s] = Strip{};
    for (i64 first = 0; first < width; first += chunk) {
        UNROLLED for (int b = 0; b < BLOCKS; b++)
            UNROLLED for (int s = 0; s < STRIPS; s++) sum[b][s] = Strip{};
        const i64 last = smaller(first + chunk, width);
        for (i64 j = first; j < last; j++)
            UNROLLED for (int b = 0; b < BLOCKS; b++)
                UNROLLED for (int s = 0; s < STRIPS; s++)
                    sum[b][s] += load<Strip>(table + (b * width + j) * ROWS + s * STRIP) * query[j];
        UNROLLED for (int b = 0; b < BLOCKS; b++)
            UNROLLED for (int s = 0; s < STRIPS; s++) total[b][s] += sum[b][s];
    }
    UNROLLED for (int b = 0; b < BLOCKS; b++)
        UNROLLED for (int s = 0; s < STRIPS; s++) store(out + b * ROWS + s * STRIP, total[b][s]);
}

void product_of_one(const float *table, const float *query, i64 n_blocks, i64 width, float *out) {
    i64 b = 0;
    for (; b + 2 <= n_blocks; b += 2) product_of_blocks<2>(table + b * width * ROWS, query, width, out + b * ROWS);
    if (b < n_blocks) product_of_blocks<1>(table + b * width * ROWS, query, width, out + b * ROWS);
}

// --------------------------------------------------------------------------------------------------- 2. the selection

// Candidates of a tile of queries: value[place][query], ascending, and the rows they belong to.
struct Lists {
    float *value;
    int32_t *row;
};

void clear(Lists lists, i64 n) {
    for (i64 i = 0; i < n; i++) {
        lists.value[i] = NONE;
        lists.row[i] = 0;
    }
}

// Insert the values of rows `first` to `first + n` into the lists of LENGTH places; of equal values the first row stays
// first. A length known at compile time keeps short lists in registers.
template <int LENGTH> void select(const float *approximate, i64 n, i64 first, Lists lists) {
    for (int left = 0; left < QUERIES; left += LANES) {
        Floats value[LENGTH];
        Ints row[LENGTH];
        for (int j = 0; j < LENGTH; j++) {
            value[j] = load<Floats>(lists.value + j * QUERIES + left);
            row[j] = load<Ints>(lists.row + j * QUERIES + left);
        }
        const float *from = approximate + left;
        for (i64 r = 0; r < n; r++, from += QUERIES) {
            const Floats x = load<Floats>(from);
            if (!less_bits(x, value[LENGTH - 1])) continue;
            const Ints here = (int32_t)(first + r) - Ints{};
            auto before_this = x < value[LENGTH - 1];
            UNROLLED for (int j = LENGTH - 1; j > 0; j--) {
                const auto before_last = x < value[j - 1];
                const Floats inserted = before_this ? x : value[j];
                const Ints inserted_row = before_this ? here : row[j];
                value[j] = before_last ? value[j - 1] : inserted;
                row[j] = before_last ? row[j - 1] : inserted_row;
                before_this = before_last;
            }
            value[0] = before_this ? x : value[0];
            row[0] = before_this ? here : row[0];
        }
        for (int j = 0; j < LENGTH; j++) {
            store(lists.value + j * QUERIES + left, value[j]);
            store(lists.row + j * QUERIES + left, row[j]);
        }
    }
}

// The list of one query: a vector holds neighboring places of it.
template <int VECTORS> struct List {
    Floats value[VECTORS];
    Ints row[VECTORS];

    void read(const float *values, const int32_t *rows) {
        for (int v = 0; v < VECTORS; v++) {
            value[v] = load<Floats>(values + v * LANES);
            row[v] = load<Ints>(rows + v * LANES);
        }
    }

    void write(float *values, int32_t *rows) const {
        for (int v = 0; v < VECTORS; v++) {
            store(values + v * LANES, value[v]);
            store(rows + v * LANES, row[v]);
        }
    }

    float last() const { return value[VECTORS - 1][LANES - 1]; }

    // Each place gets what was in the one before it, this row, or keeps its own.
    void insert(float approximate, i64 at) {
        const Floats x = approximate - Floats{};
        const Ints here = (int32_t)at - Ints{};
        UNROLLED for (int v = VECTORS - 1; v >= 0; v--) {
            const Floats before = one_place_on(value[v], v ? value[v - 1] : -NONE - Floats{});
            const Ints row_before = one_place_on(row[v], v ? row[v - 1] : Ints{});
            const auto before_this = x < value[v], before_last = x < before;
            const Floats inserted = before_this ? x : value[v];
            const Ints inserted_row = before_this ? here : row[v];
            value[v] = before_last ? before : inserted;
            row[v] = before_last ? row_before : inserted_row;
        }
    }
};

// The same for one query, whose values stand side by side.
template <int VECTORS> void select_one(const float *approximate, i64 n, i64 first, Lists lists) {
    List<VECTORS> list;
    list.read(lists.value, lists.row);
    for (i64 top = 0; top < n; top += LANES) {
        unsigned less = less_bits(load<Floats>(approximate + top), list.last() - Floats{});
        if (n - top < LANES) less &= (1u << (n - top)) - 1;
        for (; less; less &= less - 1) {
            const i64 r = top + __builtin_ctz(less);
            list.insert(approximate[r], first + r);
        }
    }
    list.write(lists.value, lists.row);
}

// The same for a tile of queries, each with a list of its own, one after the other: a value is mostly small for one of
// them only, and in long lists it is not worth looking for a place in all.
template <int VECTORS> void select_each(const float *approximate, i64 n, i64 first, Lists lists) {
    constexpr int LENGTH = VECTORS * LANES;
    Ints lanes;
    for (int lane = 0; lane < LANES; lane++) lanes[lane] = lane;
    for (int left = 0; left < QUERIES; left += LANES) {
        float *values = lists.value + left * LENGTH;
        int32_t *rows = lists.row + left * LENGTH;
        Floats last;
        for (int lane = 0; lane < LANES; lane++) last[lane] = values[(lane + 1) * LENGTH - 1];
        const float *from = approximate + left;
        for (i64 r = 0; r < n; r++, from += QUERIES)
            for (unsigned less = less_bits(load<Floats>(from), last); less; less &= less - 1) {
                const int lane = __builtin_ctz(less);
                List<VECTORS> list;
                list.read(values + lane * LENGTH, rows + lane * LENGTH);
                list.insert(from[lane], first + r);
                list.write(values + lane * LENGTH, rows + lane * LENGTH);
                last = lanes == lane - Ints{} ? list.last() - Floats{} : last;
            }
    }
}

typedef void (*Select)(const float *, i64, i64, Lists);
struct Selection {
    int length;
    Select select;
    bool by_query = false;  // whether the lists of a tile stand one after the other, not side by side
};
constexpr Selection SELECTIONS[] = {{2, select<2>}, {3, select<3>},   {4, select<4>},   {6, select<6>},
                                    {8, select<8>}, {11, select<11>}, {LONGEST_SIDE_BY_SIDE, select<LONGEST_SIDE_BY_SIDE>}};

// Lists that stand by themselves fill whole vectors.
constexpr int vectors_for(int length) { return (length + LANES - 1) / LANES; }
template <int LENGTH> constexpr Selection of_one() {
    return {vectors_for(LENGTH) * LANES, select_one<vectors_for(LENGTH)>};
}
template <int LENGTH> constexpr Selection of_each() {
    return {vectors_for(LENGTH) * LANES, select_each<vectors_for(LENGTH)>, true};
}
constexpr Selection SELECTIONS_OF_ONE[] = {of_one<8>(),  of_one<16>(), of_one<24>(),
                                           of_one<32>(), of_one<48>(), of_one<LONGEST>()};
constexpr Selection SELECTIONS_OF_EACH[] = {of_each<16>(), of_each<24>(), of_each<32>(),
                                            of_each<40>(), of_each<48>(), of_each<LONGEST>()};

// The shortest lists with room for n candidates.
Selection selection_for(i64 n, const Selection *from) {
    while (from->length < n) from++;
    return *from;
}

// -------------------------------------------------------------------------------------------------- 3. the refinement

inline Doubles load_doubles(const double *from) { return load<Doubles>(from); }
inline Doubles load_doubles(const float *from) {
    return __builtin_convertvector(load<HalfFloats>(from), Doubles);
}

// Squared distances of one query to COUNT rows, by direct difference in double precision. Eight sums, sum i over the
// features i, i + 8, i + 16, …, one after the other, then ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). This order is part
// of what the library promises: NumPy adds in the same.
template <int COUNT, typename Row>
inline void squared(const Row *const *rows, const double *query, i64 d, double *out) {
    constexpr int VECTORS = 8 / DOUBLE_LANES;
    Doubles sum[COUNT][VECTORS];
    UNROLLED for (int m = 0; m < COUNT; m++)
        UNROLLED for (int v = 0; v < VECTORS; v++) sum[m][v] = Doubles{};
    const i64 whole = d / 8 * 8;
    for (i64 j = 0; j < whole; j += 8)
        UNROLLED for (int v = 0; v < VECTORS; v++) {
            const Doubles x = load_doubles(query + j + v * DOUBLE_LANES);
            UNROLLED for (int m = 0; m < COUNT; m++) {
                const Doubles difference = load_doubles(rows[m] + j + v * DOUBLE_LANES) - x;
                sum[m][v] += difference * difference;
            }
        }
    UNROLLED for (int m = 0; m < COUNT; m++) {
        double s[8];
        UNROLLED for (int v = 0; v < VECTORS; v++) store(s + v * DOUBLE_LANES, sum[m][v]);
        for (i64 j = whole; j < d; j++) {
            const double difference = (double)rows[m][j] - query[j];
            s[j - whole] += difference * difference;
        }
        out[m] = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    }
}

// The nearest rows of one class to one query so far, by (distance, position); in a class, positions are in the order of
// ids. The distance is that which is reported: of two squares with the same root neither is nearer.
template <typename Row> struct Nearest {
    const Row *rows;
    const double *query;
    i64 d, k;
    i64 n_found = 0, n_waiting = 0;
    double distance[LARGEST_K];
    i64 position[LARGEST_K];
    i64 waiting[4];  // rows are refined four at a time

    Nearest(const Task &task, i64 q)
        : rows((const Row *)task.index->rows), query(task.queries + q * task.index->n_features),
          d(task.index->n_features), k(task.k) {}

    void offer(i64 row) {
        waiting[n_waiting++] = row;
        if (n_waiting == 4) refine();
    }

    void refine() {
        const Row *at[4];
        double squares[4];
        for (i64 m = 0; m < n_waiting; m++) at[m] = rows + waiting[m] * d;
        switch (n_waiting) {
        case 4: squared<4>(at, query, d, squares); break;
        case 3: squared<3>(at, query, d, squares); break;
        case 2: squared<2>(at, query, d, squares); break;
        case 1: squared<1>(at, query, d, squares); break;
        }
        for (i64 m = 0; m < n_waiting; m++) place(sqrt(squares[m]), waiting[m]);
        n_waiting = 0;
    }

    void place(double x, i64 row) {
        i64 j = n_found < k ? n_found++ : k;
        for (; j > 0 && (x < distance[j - 1] || (x == distance[j - 1] && row < position[j - 1])); j--)
            if (j < k) {
                distance[j] = distance[j - 1];
                position[j] = position[j - 1];
            }
        if (j < k) {
            distance[j] = x;
            position[j] = row;
        }
    }
};

// ------------------------------------------------------------------------------------------------- 4. the certificate

// Lengths of a query in the frame: of the vector that is multiplied with the table, and before its projection.
struct Norms {
    double in_table, whole;
};

// The largest approximate value that a row no farther than the K-th neighbor can have.
//
// With x the query and y such a row in the frame and r the distance in it, |y| <= |x| + r by the triangle inequality.
// The terms of the product add up to at most 2 |x| |y| + |y|² <= (2 |x| + r)² in size. Each is rounded when x and y
// become single, once in its product, and once in each sum it takes part in: of its chunk, and of the chunks. What
// underflows is off by at most the smallest single-precision number, times |x| or |y| where that is more than one, and
// then is drowned by the rest. A tenth is added for the rounding of double precision here, in the frame and in the
// refinement. The bound holds where nothing was clipped to the range of single precision.
//
// In a projection r stays an upper bound of the distance, but for the rounding of the projections themselves, which is
// in proportion to the whole of x and y.
double limit_of(Norms norm_of, double last_distance, double scale, i64 width, bool is_projected) {
    const double norm = norm_of.in_table;
    double radius = last_distance * scale;
    if (!(norm_of.whole + radius < LARGEST_SINGLE)) return __builtin_inf();
    if (is_projected) radius += PROJECTION_ERROR * (2 * norm_of.whole + radius);
    const double reach = (2 * norm + radius) * (2 * norm + radius);
    const double n_rounded = (double)(chunk_of(width) + n_chunks(width) + 8);
    const double error = 1.1 * (n_rounded * UNIT_ROUNDOFF * reach + 8.0 * (double)(width + 8) * SMALLEST_SINGLE);
    return radius * radius - norm * norm + error;
}

// ------------------------------------------------------------------------ 5. the widening, and the way through all

// Query q in the frame: one feature after the other, `step` numbers apart, and a one that |y|² is multiplied with.
Norms pack(const Task &task, i64 q, float *to, i64 step) {
    const Index &index = *task.index;
    const double *query = task.queries + q * index.n_features;
    double projected[LARGEST_AXES] = {};
    double sum = 0;
    for (i64 j = 0; j < index.n_features; j++) {
        const double x = (query[j] - index.center[j]) * index.scale;
        const double bounded = clipped(x, LARGEST_SINGLE * LARGEST_SINGLE);  // its square is finite
        sum += bounded * bounded;
        if (index.axes)
            for (i64 i = 0; i < index.n_axes; i++) projected[i] += bounded * index.axes[j * index.n_axes + i];
        else
            to[j * step] = (float)clipped(bounded, LARGEST_SINGLE);
    }
    const double whole = sqrt(sum);
    if (index.axes) {
        sum = 0;
        for (i64 i = 0; i < index.n_axes; i++) {
            sum += projected[i] * projected[i];
            to[i * step] = (float)clipped(projected[i], LARGEST_SINGLE);
        }
    }
    to[index.n_axes * step] = 1;
    return {sqrt(sum), whole};
}

// Memory of one call.
struct Memory {
    float *approximate;  // of a panel of rows and a tile of queries, or of a panel and one query; if features come in
                         // several chunks, of a panel and all tiles of a group
    float *queries;      // of a group of tiles
    Norms *norms;
    float *one;          // one query
    Lists lists;         // of a group of tiles
};

// One call, for rows of one precision.
template <typename Row> struct Search {
    const Task &task;
    const Index &index;
    const Memory &memory;
    const i64 width, k;
    const Selection selection, selection_of_one;
    i64 n_widened = 0;

    Search(const Task &task, const Memory &memory, Selection selection, Selection selection_of_one)
        : task(task), index(*task.index), memory(memory), width(index.n_axes + 1), k(task.k),
          selection(selection), selection_of_one(selection_of_one) {}

    i64 hidden(i64 q) const { return task.hidden ? task.hidden[q] : -1; }

    // Refine the candidates of query q in class c, prove or widen, and write the result. Values of the list are `step`
    // apart, those of the query in the frame `packed_step`.
    void finish(i64 q, i64 c, Lists list, i64 length, i64 step, Norms norm, const float *packed, i64 packed_step) {
        const float *value = list.value;
        const int32_t *row = list.row;
        Nearest<Row> nearest(task, q);
        i64 j = 0;
        for (; j < k && value[j * step] < NONE; j++) nearest.offer(row[j * step]);
        nearest.refine();
        if (j == k) {
            // Values are in ascending order: the first one beyond the limit proves that all others are. The last of
            // the list stands for the rows that are not in it.
            const auto limit_now = [&] {
                return limit_of(norm, nearest.distance[k - 1], index.scale, width, index.axes);
            };
            double limit = limit_now();
            const i64 last = length - 1;
            for (; j < last && value[j * step] < NONE && (double)value[j * step] <= limit; j++) {
                nearest.offer(row[j * step]);
                if (!nearest.n_waiting) limit = limit_now();
            }
            nearest.refine();
            limit = limit_now();
            if (j == last && value[last * step] < NONE && (double)value[last * step] <= limit) {
                widen(q, c, limit, packed, packed_step, nearest);
                n_widened++;
            }
        }
        double *distances = task.distances + (q * index.n_classes + c) * k;
        i64 *ids = task.ids + (q * index.n_classes + c) * k;
        for (j = 0; j < nearest.n_found; j++) {
            distances[j] = nearest.distance[j];
            ids[j] = index.ids[nearest.position[j]];
        }
        for (; j < k; j++) {
            distances[j] = __builtin_inf();
            ids[j] = -1;
        }
    }

    // Refine every row of class c with an approximate value up to the limit.
    void widen(i64 q, i64 c, double limit, const float *packed, i64 step, Nearest<Row> &nearest) {
        const i64 low = index.starts[c], high = index.starts[c + 1], own = hidden(q);
        for (i64 j = 0; j < width; j++) memory.one[j] = packed[j * step];
        nearest.n_found = 0;
        float values[2 * ROWS];
        for (i64 b = low / ROWS; b * ROWS < high; b += 2) {
            product_of_one(index.table + b * width * ROWS, memory.one, smaller(2, (high + ROWS - 1) / ROWS - b), width,
                           values);
            const i64 first = larger(low, b * ROWS), last = smaller(high, (b + 2) * ROWS);
            for (i64 at = first; at < last; at++)
                if ((double)values[at - b * ROWS] <= limit && at != own) nearest.offer(at);
        }
        nearest.refine();
    }

    // The classes that have rows among first to last, from class c on: select, and finish those that end there. Returns
    // the class that goes on after them.
    template <typename SelectRows, typename Finish>
    i64 classes(i64 c, i64 first, i64 last, SelectRows select_rows, Finish finish_class) const {
        for (; c < index.n_classes; c++) {
            const i64 low = larger(index.starts[c], first), high = smaller(index.starts[c + 1], last);
            if (low < high) select_rows(low - first, high - low, low);
            if (index.starts[c + 1] > last) break;
            finish_class(c);
        }
        return c;
    }

    // One query against all rows.
    void search_one(i64 q) {
        float *packed = memory.queries;
        const Norms norm = pack(task, q, packed, 1);
        const i64 own = hidden(q);
        const i64 length = selection_of_one.length;
        clear(memory.lists, length);
        i64 c = 0;
        for (i64 first = 0; first < index.n_rows; first += SINGLE_PANEL * ROWS) {
            const i64 last = smaller(first + SINGLE_PANEL * ROWS, index.n_rows);
            product_of_one(index.table + first * width, packed, (last - first + ROWS - 1) / ROWS, width,
                           memory.approximate);
            if (own >= first && own < last) memory.approximate[own - first] = NONE;
            c = classes(
                c, first, last,
                [&](i64 from, i64 n, i64 row) {
                    selection_of_one.select(memory.approximate + from, n, row, memory.lists);
                },
                [&](i64 done) {
                    finish(q, done, memory.lists, length, 1, norm, packed, 1);
                    clear(memory.lists, length);
                });
        }
    }

    // Where query i of a group is in the frame.
    float *packed(i64 i) const { return memory.queries + i / TILE_QUERIES * TILE_QUERIES * width + i % TILE_QUERIES; }

    // Queries first to last, a group of tiles, against all rows: a chunk of a panel stays in cache for all tiles.
    void search_group(i64 first_query, i64 last_query) {
        const i64 n_tiles = (last_query - first_query + QUERIES - 1) / QUERIES;
        for (i64 i = 0; i < n_tiles * QUERIES; i++)
            if (first_query + i < last_query)
                memory.norms[i] = pack(task, first_query + i, packed(i), TILE_QUERIES);
            else
                for (i64 j = 0; j < width; j++) packed(i)[j * TILE_QUERIES] = 0;
        clear(memory.lists, n_tiles * selection.length * QUERIES);
        const i64 chunk = chunk_of(width);
        i64 class_of_panel = 0;
        for (i64 first = 0; first < index.n_rows; first += PANEL * ROWS) {
            const i64 last = smaller(first + PANEL * ROWS, index.n_rows), n_blocks = (last - first + ROWS - 1) / ROWS;
            i64 next_class = class_of_panel;
            for (i64 feature = 0; feature < width; feature += chunk)
                for (i64 t = 0; t < n_tiles; t++) {
                    float *approximate = memory.approximate + (chunk < width ? t * PANEL * ROWS * QUERIES : 0);
                    product(index.table + first * width, packed(t * QUERIES), n_blocks, width, feature, approximate);
                    if (feature + chunk >= width)
                        next_class = select_tile(first_query, last_query, t, first, last, class_of_panel, approximate);
                }
            class_of_panel = next_class;
        }
    }

    // Candidates of tile t among rows first to last, of class c and those after it, which end there. Returns the class
    // that goes on after them.
    i64 select_tile(i64 first_query, i64 last_query, i64 t, i64 first, i64 last, i64 c, float *approximate) {
        const i64 q0 = first_query + t * QUERIES, n = smaller(QUERIES, last_query - q0), length = selection.length;
        const Lists lists = {memory.lists.value + t * length * QUERIES, memory.lists.row + t * length * QUERIES};
        for (i64 i = 0; task.hidden && i < n; i++) {
            const i64 own = task.hidden[q0 + i];
            if (own >= first && own < last) approximate[(own - first) * QUERIES + i] = NONE;
        }
        return classes(
            c, first, last,
            [&](i64 from, i64 n_rows, i64 row) { selection.select(approximate + from * QUERIES, n_rows, row, lists); },
            [&](i64 done) {
                for (i64 i = 0; i < n; i++) {
                    const i64 begin = selection.by_query ? i * length : i;
                    finish(q0 + i, done, {lists.value + begin, lists.row + begin}, length,
                           selection.by_query ? 1 : QUERIES, memory.norms[t * QUERIES + i], packed(t * QUERIES + i),
                           TILE_QUERIES);
                }
                clear(lists, length * QUERIES);
            });
    }

    void search_all() {
        i64 q = 0;
        while (q < task.n_queries) {
            const i64 left = task.n_queries - q;
            if (left <= FEW) {
                search_one(q++);
            } else {
                const i64 rest = left % QUERIES;  // a few too many for whole tiles are searched one by one
                const i64 n = smaller(group_of(width) * QUERIES, rest <= FEW ? left - rest : left);
                search_group(q, q + n);
                q += n;
            }
        }
    }
};

}  // namespace

// Search; returns how many times candidates had to be widened, -1 if there is no memory, -2 if k is too large.
EXPORT i64 neighboragg_search(const Index *index, i64 n_queries, const double *queries, const i64 *hidden, i64 k,
                              double *distances, i64 *ids) {
    if (k < 1 || k > LARGEST_K) return -2;
    const Task task = {index, n_queries, queries, hidden, k, distances, ids};
    const i64 width = index->n_axes + 1;
    // One more than the candidates, to compare them with; in a projection, rows that are farther away come between.
    const i64 n_kept = smaller(LONGEST, (index->axes ? 2 * k : k + (width > MANY_FEATURES ? 3 : 1)));
    const Selection selection =
        selection_for(n_kept, n_kept <= LONGEST_SIDE_BY_SIDE ? SELECTIONS : SELECTIONS_OF_EACH);
    const Selection selection_of_one = selection_for(n_kept, SELECTIONS_OF_ONE);
    const i64 group = smaller((n_queries + QUERIES - 1) / QUERIES, group_of(width));
    const i64 tiles_at_once = n_chunks(width) > 1 ? group : 1;
    const i64 single = n_queries <= FEW;

    const i64 alignment = 64 / sizeof(float);
    // A vector may reach beyond the last value of one query.
    const i64 n_in_panel = single ? 0 : tiles_at_once * PANEL * QUERIES;
    const i64 n_approximate = alignment + larger(n_in_panel, SINGLE_PANEL) * ROWS;
    const i64 n_packed = rounded_up(single ? width : group * width * QUERIES, alignment);
    const i64 n_norms = single ? 0 : group * QUERIES;
    const i64 n_one = rounded_up(width, alignment);
    const i64 n_in_tiles = single ? 0 : group * QUERIES * selection.length;
    const i64 n_lists = rounded_up(larger(selection_of_one.length, n_in_tiles), alignment);
    const i64 n_bytes = (n_approximate + n_packed + n_one + 2 * n_lists) * sizeof(float) + n_norms * sizeof(Norms) + 64;
    void *allocated = malloc((size_t)n_bytes);
    if (!allocated) return -1;
    float *start = (float *)(((uintptr_t)allocated + 63) & ~(uintptr_t)63);
    Memory memory;
    memory.approximate = start;
    memory.queries = memory.approximate + n_approximate;
    memory.norms = (Norms *)(memory.queries + n_packed);
    memory.one = (float *)(memory.norms + n_norms);
    memory.lists.value = memory.one + n_one;
    memory.lists.row = (int32_t *)(memory.lists.value + n_lists);

    i64 n_widened;
    if (index->is_double) {
        Search<double> search(task, memory, selection, selection_of_one);
        search.search_all();
        n_widened = search.n_widened;
    } else {
        Search<float> search(task, memory, selection, selection_of_one);
        search.search_all();
        n_widened = search.n_widened;
    }
    free(allocated);
    return n_widened;
}

// What the processor can do: 2 for AVX-512, 1 for AVX2 with fused operations, else 0. Asks the processor and the
// operating system itself, as the compilers' own functions for it do not link everywhere.
EXPORT int32_t neighboragg_processor_level() {
#if defined(__x86_64__)
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_FMA)) return 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    constexpr unsigned YMM_SAVED = 0x6, ZMM_SAVED = 0xe6;
    if ((low & YMM_SAVED) != YMM_SAVED || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2)) return 0;
    constexpr unsigned AVX512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
    return (low & ZMM_SAVED) == ZMM_SAVED && (b & AVX512) == AVX512 ? 2 : 1;
#else
    return 0;
#endif
}

#ifndef SOURCE_DIGEST
#define SOURCE_DIGEST ""
#endif
// Of the source this was compiled from, so that a library left over from another one is not used.
EXPORT const char *neighboragg_source_digest() { return SOURCE_DIGEST; }
