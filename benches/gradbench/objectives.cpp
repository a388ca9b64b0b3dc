// Objective functions of GradBench in C++, as one writes them by hand: their time tells what a derivative in C++ would take.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

struct Vector {
    double x, y, z;
};

// Rodrigues' formula, for a rotation whose angle is the length of `r`.
Vector rotated(const double *r, Vector v) {
    const double angle = std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
    const double a = r[0] / angle, b = r[1] / angle, c = r[2] / angle, cosine = std::cos(angle), sine = std::sin(angle);
    const double along = (a * v.x + b * v.y + c * v.z) * (1.0 - cosine);
    return {v.x * cosine + (b * v.z - c * v.y) * sine + a * along, v.y * cosine + (c * v.x - a * v.z) * sine + b * along,
            v.z * cosine + (a * v.y - b * v.x) * sine + c * along};
}

struct Matrix {
    double at[16];
};

Matrix product(const double *a, const double *b) {
    Matrix made;
    for (int row = 0; row < 4; ++row)
        for (int column = 0; column < 4; ++column) {
            double sum = 0.0;
            for (int k = 0; k < 4; ++k) sum += a[4 * row + k] * b[4 * k + column];
            made.at[4 * row + column] = sum;
        }
    return made;
}

}  // namespace

extern "C" {

// `weights` has shape (2 * layers, 4, size), `extra` (3, size), `state` (2 * layers, size).
double lstm(const double *weights, const double *extra, const double *state, const int64_t *letters, int64_t layers,
            int64_t count, int64_t size) {
    std::vector<double> cells(state, state + 2 * layers * size), x(size);
    double total = 0.0;
    for (int64_t t = 0; t + 1 < count; ++t) {
        for (int64_t k = 0; k < size; ++k) x[k] = k == letters[t] ? extra[k] : 0.0;
        for (int64_t layer = 0; layer < layers; ++layer) {
            double *hidden = &cells[2 * layer * size], *cell = hidden + size;
            const double *w = weights + 8 * layer * size, *b = w + 4 * size;
            for (int64_t k = 0; k < size; ++k) {
                const double forget = sigmoid(x[k] * w[k] + b[k]);
                const double take = sigmoid(hidden[k] * w[size + k] + b[size + k]);
                const double give = sigmoid(x[k] * w[2 * size + k] + b[2 * size + k]);
                const double change = std::tanh(hidden[k] * w[3 * size + k] + b[3 * size + k]);
                cell[k] = cell[k] * forget + take * change;
                hidden[k] = x[k] = give * std::tanh(cell[k]);
            }
        }
        double sum = 2.0;
        for (int64_t k = 0; k < size; ++k) {
            const double y = x[k] * extra[size + k] + extra[2 * size + k];
            sum += std::exp(y);
            if (k == letters[t + 1]) total += y;
        }
        total -= std::log(sum);
    }
    return -total / static_cast<double>(count * size);
}

// The sum of the residuals' squares, which are written to `residuals`: two for each observation, then one for each weight.
double ba(const double *cameras, const double *points, const double *weights, const double *features, const int64_t *camera_of,
          const int64_t *point_of, double *residuals, int64_t count) {
    double sum = 0.0;
    for (int64_t at = 0; at < count; ++at) {
        const double *c = cameras + 11 * camera_of[at], *p = points + 3 * point_of[at], w = weights[at];
        const Vector seen = rotated(c, {p[0] - c[3], p[1] - c[4], p[2] - c[5]});
        const double u = seen.x / seen.z, v = seen.y / seen.z, square = u * u + v * v;
        const double factor = c[6] * (1.0 + c[9] * square + c[10] * square * square);
        double *r = residuals + 2 * at;
        r[0] = w * (u * factor + c[7] - features[2 * at]);
        r[1] = w * (v * factor + c[8] - features[2 * at + 1]);
        residuals[2 * count + at] = 1.0 - w * w;
        sum += r[0] * r[0] + r[1] * r[1] + (1.0 - w * w) * (1.0 - w * w);
    }
    return sum;
}

// The sum of the squared distances, which are written to `residuals`. A bone's angles about x, z and y are elements of the pose, or 0.
double ht(const double *pose, const double *relatives, const double *inverses, const double *base, const double *weights,
          const double *targets, const int64_t *angles_of, const int64_t *parents, const int64_t *nearest, double *residuals,
          int64_t bones, int64_t vertices, int64_t points) {
    std::vector<Matrix> absolutes(bones), transforms(bones);
    for (int64_t bone = 0; bone < bones; ++bone) {
        double c[3], s[3];
        for (int k = 0; k < 3; ++k) {
            const double angle = angles_of[3 * bone + k] < 26 ? pose[angles_of[3 * bone + k]] : 0.0;
            c[k] = std::cos(angle), s[k] = std::sin(angle);
        }
        const double turned[] = {c[2] * c[1],  s[0] * s[2] * c[1] - c[0] * s[1], s[0] * s[1] + c[0] * s[2] * c[1], 0.0,
                                 c[2] * s[1],  c[0] * c[1] + s[0] * s[2] * s[1], c[0] * s[2] * s[1] - s[0] * c[1], 0.0,
                                 -s[2],        s[0] * c[2],                      c[0] * c[2],                      0.0,
                                 0.0,          0.0,                              0.0,                              1.0};
        const Matrix posed = product(relatives + 16 * bone, turned);
        absolutes[bone] = parents[bone] < 0 ? posed : product(absolutes[parents[bone]].at, posed.at);
        transforms[bone] = product(absolutes[bone].at, inverses + 16 * bone);
    }
    std::vector<Vector> skinned(vertices);
    for (int64_t v = 0; v < vertices; ++v) {
        double sums[3] = {};
        for (int64_t bone = 0; bone < bones; ++bone) {
            for (int row = 0; row < 3; ++row) {
                const double *t = transforms[bone].at + 4 * row, *x = base + 4 * v;
                sums[row] += weights[bones * v + bone] * (t[0] * x[0] + t[1] * x[1] + t[2] * x[2] + t[3] * x[3]);
            }
        }
        skinned[v] = rotated(pose, {sums[0], sums[1], sums[2]});
    }
    double sum = 0.0;
    for (int64_t at = 0; at < points; ++at) {
        const Vector v = skinned[nearest[at]];
        const double place[] = {v.x + pose[3], v.y + pose[4], v.z + pose[5]};
        for (int k = 0; k < 3; ++k) {
            const double r = residuals[3 * at + k] = targets[3 * at + k] - place[k];
            sum += r * r;
        }
    }
    return sum;
}

double ode(const double *x, int64_t n, int64_t steps) {
    std::vector<double> y(n, 0.0), sum(n), stage(n), next(n);
    const double step = 2.0 / static_cast<double>(steps), shares[] = {0.5 * step, 0.5 * step, step}, counts[] = {1.0, 2.0, 2.0, 1.0};
    for (int64_t s = 0; s < steps; ++s) {
        stage = y;
        std::fill(sum.begin(), sum.end(), 0.0);
        for (int part = 0; part < 4; ++part) {
            for (int64_t i = 0; i < n; ++i) {
                const double change = i ? x[i] * stage[i - 1] : x[0];
                sum[i] += counts[part] * change;
                if (part < 3) next[i] = y[i] + shares[part] * change;
            }
            stage.swap(next);
        }
        for (int64_t i = 0; i < n; ++i) y[i] += step / 6.0 * sum[i];
    }
    return y[n - 1];
}
}
