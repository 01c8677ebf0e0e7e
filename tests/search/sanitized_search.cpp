// Runs the compiled search on small random problems, whose arrays are not a byte longer than promised, and compares with
// the plainest search there is. Built with the sanitizers by test_search_kernel.py.

#include "search.cpp"

#include <stdio.h>

#include <algorithm>
#include <vector>

static uint64_t state = 1;
static i64 below(i64 n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (i64)((state >> 33) % (uint64_t)n);
}

template <typename Row> static double distance(const Row *row, const double *query, i64 d) {
    double s[8] = {};
    for (i64 j = 0; j < d; j++) s[j % 8] += ((double)row[j] - query[j]) * ((double)row[j] - query[j]);
    return sqrt(((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])));
}

// With a number of axes other than d, the table holds the first features only, which is a projection.
template <typename Row>
static bool check(i64 n, i64 d, i64 n_axes, i64 n_classes, i64 k, i64 n_queries, bool ties, double size) {
    const i64 n_blocks = (n + ROWS - 1) / ROWS;
    // Each array on its own, exactly as long as it has to be.
    std::vector<Row> rows(n * d);
    std::vector<double> queries(n_queries * d), center(d, 0.0), distances(n_queries * n_classes * k);
    std::vector<float> table(n_blocks * (n_axes + 1) * ROWS, 0.0f);
    std::vector<double> axes(d * n_axes, 0.0);
    for (i64 j = 0; j < n_axes; j++) axes[j * n_axes + j] = 1;
    std::vector<i64> ids(n), starts(n_classes + 1), hidden(n_queries), found(n_queries * n_classes * k);
    for (Row &x : rows) x = (Row)(size * (ties ? (double)below(3) : (double)below(1 << 20) / (1 << 20)));
    for (double &x : queries) x = size * (ties ? (double)below(3) : (double)below(1 << 20) / (1 << 20));
    for (i64 c = 1; c < n_classes; c++) starts[c] = below(n + 1);
    starts[n_classes] = n;
    std::sort(starts.begin(), starts.end());
    for (i64 i = 0; i < n; i++) ids[i] = i;
    for (i64 &own : hidden) own = below(n + 1) - 1;
    const double scale = 1 / size;
    for (i64 i = 0; i < n; i++) {
        double norm = 0;
        float *to = table.data() + i / ROWS * (n_axes + 1) * ROWS + i % ROWS;
        for (i64 j = 0; j < n_axes; j++) {
            const double y = (double)rows[i * d + j] * scale;
            norm += y * y;
            to[j * ROWS] = (float)(-2 * y);
        }
        to[n_axes * ROWS] = (float)norm;
    }
    const Index index = {n,          d,          n_classes,     sizeof(Row) == 8, rows.data(), table.data(),
                         ids.data(), starts.data(), center.data(), scale, n_axes < d ? axes.data() : nullptr, n_axes};
    if (neighboragg_search(&index, n_queries, queries.data(), hidden.data(), k, distances.data(), found.data()) < 0)
        return false;
    for (i64 q = 0; q < n_queries; q++)
        for (i64 c = 0; c < n_classes; c++) {
            std::vector<std::pair<double, i64>> all;
            for (i64 i = starts[c]; i < starts[c + 1]; i++)
                if (i != hidden[q]) all.push_back({distance(rows.data() + i * d, queries.data() + q * d, d), i});
            std::sort(all.begin(), all.end());
            for (i64 j = 0; j < k; j++) {
                const i64 at = (q * n_classes + c) * k + j;
                const bool there = j < (i64)all.size();
                if (found[at] != (there ? all[j].second : -1)) return false;
                if (distances[at] != (there ? all[j].first : __builtin_inf())) return false;
            }
        }
    return true;
}

int main() {
    const i64 features[] = {1, 7, 8, 17, 130, 300}, neighbors[] = {1, 5, 20, 64}, queries[] = {1, 8, 9, 32, 45, 70};
    int n_wrong = 0, n_checked = 0;
    for (const i64 d : features)
        for (const i64 k : neighbors)
            for (const i64 n_queries : queries) {
                const i64 n = 1 + below(300), n_classes = 1 + below(9);
                const bool ties = below(2);
                const double size = below(2) ? 1.0 : 1048576.0;
                for (const i64 n_axes : {d, std::min<i64>((d + 1) / 2, LARGEST_AXES)}) {
                    n_wrong += !check<double>(n, d, n_axes, n_classes, k, n_queries, ties, size);
                    n_wrong += !check<float>(n, d, n_axes, n_classes, k, n_queries, ties, size);
                    n_checked += 2;
                }
            }
    printf("%d of %d wrong\n", n_wrong, n_checked);
    return n_wrong > 0;
}
