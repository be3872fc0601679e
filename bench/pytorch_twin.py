#!/usr/bin/env python3
"""The same training step in PyTorch on the CPU, beside `fairway bench step`, in one run.

Usage: bench/pytorch_twin.py [--recipe demo] [--tokens 2048] [--rounds 3] [--golden CASE.safetensors]
Needs PyTorch (pip install torch numpy). The model is that of recipes with bigram hash, static smear gate, value embedding,
XSA and additive skips (demo, pr726, pr1105). With --golden the twin first shows that its loss and gradients are the stored ones.
"""
import argparse, json, math, os, statistics, struct, subprocess, sys, time

import numpy as np
import torch
import torch.nn.functional as F

EPS = 2.0 ** -23
NS5 = (3.4445, -4.7750, 2.0315)


def rms(x):
    return F.rms_norm(x, (x.size(-1),), eps=EPS)


class Twin(torch.nn.Module):
    """Parameters under Fairway's interchange names (dots become underscores)."""

    def __init__(self, m, seq_len):
        super().__init__()
        self.m = m
        self.seq_len = seq_len
        L, D, H, K, V, Fh = m["layers"], m["dim"], m["heads"], m["kv_heads"], m["vocab"], m["mlp_hidden"]
        E = D // H
        self.E, self.H, self.K, self.L = E, H, K, L
        p = lambda *shape: torch.nn.Parameter(torch.randn(*shape) * 0.02)
        self.embed_token = p(V, D)
        self.bank_qo, self.bank_kv = p(2 * L, D, D), p(2 * L, K * E, D)
        self.bank_up, self.bank_down = p(L, Fh, D), p(L, D, Fh)
        self.block_attn_scale, self.block_mlp_scale = p(L, D), p(L, D)
        self.block_resid_mix, self.block_q_gain = p(L, 2, D), p(L, H)
        self.skip_weight, self.smear_gate = p(L // 2, D), p(D)
        self.bigram_table, self.bigram_proj, self.bigram_scale = p(m["bigram"]["rows"], m["bigram"]["dim"]), p(D, m["bigram"]["dim"]), p(1)
        ve = m["value_embed"]
        self.value_embed_table, self.value_embed_proj = p(V, ve["dim"]), p(K * E, ve["dim"])
        self.value_embed_scale, self.value_embed_layer_scale = p(1), p(len(ve["layers"]))
        R, base = m["rope"]["dims"], m["rope"]["base"]
        if seq_len > m["rope"]["reference_length"]:
            base *= (seq_len / m["rope"]["reference_length"]) ** (R / (R - 2))
        angle = torch.arange(seq_len, dtype=torch.float64)[:, None] * base ** (-torch.arange(0, R, 2, dtype=torch.float64) / R)
        self.register_buffer("cos", angle.cos().float()[None, :, None, :])
        self.register_buffer("sin", angle.sin().float()[None, :, None, :])

    def rope(self, x):
        h = self.cos.size(-1)
        a, b, rest = x[..., :h], x[..., h : 2 * h], x[..., 2 * h :]
        return torch.cat((a * self.cos + b * self.sin, b * self.cos - a * self.sin, rest), -1)

    def attention(self, i, a, ve):
        B, T, _ = a.shape
        q = F.linear(a, self.bank_qo[i]).view(B, T, self.H, self.E)
        k = F.linear(a, self.bank_kv[i]).view(B, T, self.K, self.E)
        v = F.linear(a, self.bank_kv[self.L + i])
        layers = self.m["value_embed"]["layers"]
        if i in layers:
            v = v + self.value_embed_layer_scale[layers.index(i)] * ve
        v = v.view(B, T, self.K, self.E)
        q, k = self.rope(rms(q)), self.rope(rms(k))
        q = q * self.block_q_gain[i][None, None, :, None]
        rep = self.H // self.K
        kk = k.transpose(1, 2).repeat_interleave(rep, 1)
        vv = v.transpose(1, 2).repeat_interleave(rep, 1)
        y = F.scaled_dot_product_attention(q.transpose(1, 2), kk, vv, is_causal=True).transpose(1, 2)
        if 0 <= self.m["xsa_first_layer"] <= i:
            u = F.normalize(v, dim=-1).unsqueeze(3)
            g = y.reshape(B, T, self.K, rep, self.E)
            y = (g - (g * u).sum(-1, keepdim=True) * u)
        return F.linear(y.reshape(B, T, -1), self.bank_qo[self.L + i])

    def block(self, i, x, x0, ve):
        lam = 1 / math.sqrt(i + 1) if self.m["layer_scale"] else 1.0
        x = self.block_resid_mix[i, 0] * x + self.block_resid_mix[i, 1] * x0
        x = x + self.block_attn_scale[i] * self.attention(i, rms(x) * lam, ve)
        pre = F.linear(rms(x) * lam, self.bank_up[i])
        return x + self.block_mlp_scale[i] * F.linear(F.leaky_relu(pre, 0.5).square(), self.bank_down[i])

    def forward(self, tokens, targets):
        rows = self.bigram_table.size(0)
        j = torch.bitwise_xor(36313 * tokens[:, 1:], 27191 * tokens[:, :-1]) % (rows - 1)
        j = torch.cat((torch.full_like(tokens[:, :1], rows - 1), j), 1)
        e = F.embedding(tokens, self.embed_token) + self.bigram_scale * F.linear(F.embedding(j, self.bigram_table), self.bigram_proj)
        u = rms(e)
        g = torch.sigmoid(self.smear_gate)
        x = x0 = (1 - g) * u + g * F.pad(u, (0, 0, 1, 0))[:, :-1]
        ve = self.value_embed_scale * F.linear(F.embedding(tokens, self.value_embed_table), self.value_embed_proj)
        skips = []
        half = self.L // 2
        for i in range(self.L):
            if i >= half and skips:
                x = x + self.skip_weight[i - half] * skips.pop()
            x = self.block(i, x, x0, ve)
            if i < half:
                skips.append(x)
        logits = F.linear(rms(x), self.embed_token)
        cap = self.m["softcap"]
        z = cap * torch.tanh(logits / cap)
        return F.cross_entropy(z.flatten(0, 1), targets.flatten())


def load_safetensors(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + n])
    kinds = {"F32": np.float32, "I32": np.int32, "F64": np.float64}
    meta = header.pop("__metadata__", {})
    return meta, {k: torch.from_numpy(np.frombuffer(raw[8 + n + v["data_offsets"][0] : 8 + n + v["data_offsets"][1]], kinds[v["dtype"]]).copy().reshape(v["shape"])) for k, v in header.items()}


def check_golden(path):
    meta, t = load_safetensors(path)
    L = int(meta["NUM_LAYERS"])
    m = dict(layers=L, dim=int(meta["MODEL_DIM"]), heads=int(meta["NUM_HEADS"]), kv_heads=int(meta["NUM_KV_HEADS"]), vocab=int(meta["VOCAB_SIZE"]),
             mlp_hidden=round(float(meta["MLP_MULT"]) * int(meta["MODEL_DIM"])), bigram=dict(rows=int(meta["BIGRAM_VOCAB_SIZE"]), dim=int(meta["BIGRAM_DIM"])),
             value_embed=dict(dim=int(meta["VE_DIM"]), layers=[int(i) for i in meta["VE_LAYERS"].split(",")]), softcap=30, layer_scale=True,
             rope=dict(dims=int(meta["ROPE_DIMS"]), base=10000, reference_length=1024), xsa_first_layer=L - int(meta["XSA_LAST_N"]))
    twin = Twin(m, t["tokens"].size(1))
    for name, parameter in twin.named_parameters():
        stored = t["param." + dotted(name)]
        parameter.data.copy_(stored.reshape(parameter.shape))
    loss = twin(t["tokens"].long(), t["targets"].long())
    loss.backward()
    worst = max((p.grad.flatten() - t["grad." + dotted(n)].flatten()).norm().item() / t["grad." + dotted(n)].norm().item() for n, p in twin.named_parameters())
    error = abs(loss.item() - float(meta["loss_f64"])) / float(meta["loss_f64"])
    print(f"twin on {os.path.basename(path)}: loss error {error:.1e}, worst gradient {worst:.1e}", file=sys.stderr)
    if not (error < 1e-6 and worst < 5e-4):
        sys.exit("the PyTorch twin is not the same model; nothing was timed")


def dotted(name):
    for prefix in ("value_embed", "embed", "bank", "block", "skip", "smear", "bigram"):
        if name.startswith(prefix + "_"):
            return prefix + "." + name[len(prefix) + 1 :]
    return name


class Step:
    """Forward, backward, clip, AdamW, Muon (NS5, batched) and EMA: what `fairway bench step` times."""

    def __init__(self, twin, compiled):
        self.model = torch.compile(twin) if compiled else twin
        named = dict(twin.named_parameters())
        self.banks = [named[n] for n in ("bank_qo", "bank_kv", "bank_up", "bank_down")]
        rest = [p for n, p in named.items() if not n.startswith("bank_")]
        self.all = list(named.values())
        self.adam = torch.optim.AdamW(rest, lr=0.025, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.04, fused=True)
        self.momentum = [torch.zeros_like(b) for b in self.banks]
        self.ema = [p.detach().clone() for p in self.all]
        self.orthogonal = torch.compile(newton_schulz) if compiled else newton_schulz

    def __call__(self, tokens, targets):
        for p in self.all:
            p.grad = None
        self.model(tokens, targets).backward()
        torch.nn.utils.clip_grad_norm_(self.all, 0.3, foreach=True)
        self.adam.step()
        with torch.no_grad():
            for bank, buffer in zip(self.banks, self.momentum):
                buffer.mul_(0.9).add_(bank.grad)
                update = self.orthogonal(bank.grad.add(buffer, alpha=0.9))
                bank.mul_(1 - 0.025 * 0.04).add_(update, alpha=-0.025 * max(1, bank.size(1) / bank.size(2)) ** 0.5)
            torch._foreach_lerp_(self.ema, [p.detach() for p in self.all], 0.003)


def newton_schulz(u):
    tall = u.size(-2) > u.size(-1)
    x = u.mT if tall else u
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    a, b, c = NS5
    for _ in range(5):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x


def seconds_of(work, repeats):
    out = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        out.append(time.perf_counter() - begin)
    return statistics.median(out)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--recipe", default="demo")
    args.add_argument("--tokens", type=int, default=0)
    args.add_argument("--threads", type=int, default=os.cpu_count())
    args.add_argument("--rounds", type=int, default=3)
    args.add_argument("--seconds", type=float, default=6)
    args.add_argument("--golden")
    args.add_argument("--program", default="build/bin/fairway")
    a = args.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    if a.golden:
        check_golden(a.golden)
    recipe = json.loads(subprocess.check_output([a.program, "recipe", "show", a.recipe, "--json"]))["recipe"]
    m, T = recipe["model"], recipe["data"]["seq_len"]
    tokens = a.tokens or 2 * T
    x = torch.randint(m["vocab"], (tokens // T, T))
    y = torch.randint(m["vocab"], (tokens // T, T))
    steps = {"eager": Step(Twin(m, T), False), "compiled": Step(Twin(m, T), True)}
    for step in steps.values():
        for _ in range(3):
            step(x, y)
    rates = {name: [] for name in ("fairway", *steps)}
    for _ in range(a.rounds):  # interleaved, so that a noisy neighbour hits all of them
        out = subprocess.check_output([a.program, "bench", "step", "--recipe", a.recipe, "--tokens", str(tokens), "--threads", str(a.threads), "--seconds", str(a.seconds), "--json", "--quiet"])
        rates["fairway"].append(json.loads(out)["tokens_per_second"])
        for name, step in steps.items():
            once = seconds_of(lambda: step(x, y), 1)
            rates[name].append(tokens / seconds_of(lambda: step(x, y), max(3, int(a.seconds / 2 / once))))
    best = {name: max(values) for name, values in rates.items()}
    ratio = {name: statistics.median([f / o for f, o in zip(rates["fairway"], rates[name])]) for name in steps}
    print(json.dumps({"recipe": a.recipe, "tokens": tokens, "threads": a.threads, "torch": torch.__version__, "tokens_per_second": rates, "best": best, "fairway_over": ratio}))


if __name__ == "__main__":
    main()
