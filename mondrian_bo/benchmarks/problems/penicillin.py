"""The penicillin problem: yield, carbon dioxide and duration of a fermentation.

Q. Liang, L. Lai. Scalable Bayesian Optimization Accelerates Process Optimization of Penicillin
Production. NeurIPS workshop AI for Science, 2021. Explicit Euler steps of one hour, as in their
program and in BoTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mondrian_bo.benchmarks.problems.outcomes import OutcomeProblem, Outcomes
from mondrian_bo.search_space import Float, SearchSpace

__all__ = ["PENICILLIN"]

_HOURS = 2500
"""Longest duration of a fermentation, in hours."""

_LARGEST_VOLUME = 180.0
"""Volume at which a fermentation ends, in litres."""

_SMALLEST_GAIN = 1e-11
"""Change of the concentration per hour below which a fermentation ends."""

_YIELD_BIOMASS, _YIELD_PRODUCT = 0.45, 0.90
"""Biomass and penicillin per substrate, Y_xs and Y_ps."""

_INHIBITION_ACID, _INHIBITION_BASE = 1e-10, 7e-5
"""Constants K_1 and K_2 of the growth rate's dependence on the acidity, mol/l."""

_MAINTENANCE = 0.014
"""Substrate that the biomass uses per hour, m_X."""

_CO2_GROWTH, _CO2_BIOMASS, _CO2_CONSTANT = 0.143, 4e-7, 1e-4
"""Carbon dioxide by growth, biomass and time, alpha_1 to alpha_3."""

_GROWTH, _GROWTH_SATURATION = 0.092, 0.15
"""Largest specific growth rate mu_X per hour, and Contois constant K_X."""

_PRODUCTION, _PRODUCTION_SATURATION, _PRODUCTION_INHIBITION = 0.005, 0.0002, 0.10
"""Specific rate of production mu_p, and its constants K_p and K_I."""

_HYDROLYSIS = 0.04
"""Share of penicillin lost per hour, K."""

_ARRHENIUS_GROWTH, _ARRHENIUS_DEATH = (7e3, 5100.0), (1e33, 50000.0)
"""Factor and activation energy (cal/mol) of growth and death: k_g, E_g and k_d, E_d."""

_GAS = 1.9872
"""Gas constant in cal/(mol K)."""

_EVAPORATION, _FREEZING, _BOILING = 2.5e-4, 273.0, 373.0
"""Loss by evaporation per hour, lambda, and the two temperatures of its formula, in kelvin."""

_VOLUME = 2183455.909507436
"""Hypervolume of the best known front within the reference point, from BoTorch (NSGA-II)."""


def _penicillin(params: Mapping[str, Any]) -> Outcomes:
    """Return minus the concentration of penicillin, the carbon dioxide and the hours."""
    volume, biomass = params["volume"], params["biomass"]
    temperature, glucose = params["temperature"], params["glucose"]
    feed, feed_glucose = params["feed_rate"], params["feed_glucose"]
    acidity = 10.0 ** -params["pH"]
    growth_factor, growth_energy = _ARRHENIUS_GROWTH
    death_factor, death_energy = _ARRHENIUS_DEATH
    rate = (
        _GROWTH
        / (1.0 + _INHIBITION_ACID / acidity + acidity / _INHIBITION_BASE)
        * (
            growth_factor * math.exp(-growth_energy / (_GAS * temperature))
            - death_factor * math.exp(-death_energy / (_GAS * temperature))
        )
    )
    relative = (temperature - _BOILING) / (_FREEZING - _BOILING)
    evaporation = _EVAPORATION * math.expm1(5.0 * relative)
    product = dioxide = 0.0
    hours = 0
    going_on = True
    while going_on and hours < _HOURS:
        hours += 1
        gain_volume = feed - volume * evaporation
        dilution = gain_volume / volume
        growth = rate * glucose / (_GROWTH_SATURATION * biomass + glucose)
        production = (
            _PRODUCTION
            * glucose
            / (_PRODUCTION_SATURATION + glucose + glucose**2 / _PRODUCTION_INHIBITION)
        )
        gain_biomass = growth * biomass - biomass * dilution
        gain_glucose = (
            -(growth / _YIELD_BIOMASS + production / _YIELD_PRODUCT + _MAINTENANCE) * biomass
            + feed * feed_glucose / volume
            - glucose * dilution
        )
        gain_product = production * biomass - _HYDROLYSIS * product - product * dilution
        dioxide += _CO2_GROWTH * gain_biomass + _CO2_BIOMASS * biomass + _CO2_CONSTANT
        product += gain_product
        volume += gain_volume
        biomass += gain_biomass
        glucose += gain_glucose
        going_on = volume <= _LARGEST_VOLUME and glucose >= 0.0 and gain_product >= _SMALLEST_GAIN
    return Outcomes((-product, dioxide, float(hours)))


PENICILLIN = OutcomeProblem(
    name="penicillin",
    space=SearchSpace(
        {
            "volume": Float(60.0, 120.0),
            "biomass": Float(0.05, 18.0),
            "temperature": Float(293.0, 303.0),
            "glucose": Float(0.05, 18.0),
            "feed_rate": Float(0.01, 0.5),
            "feed_glucose": Float(500.0, 700.0),
            "pH": Float(5.0, 6.5),
        }
    ),
    function=_penicillin,
    n_objectives=3,
    reference=(25.935, 57.612, 935.5),
    optimum=-_VOLUME,
    tolerance=0.01 * _VOLUME,
    group="fronts",
    half="held-out",
    description="yield, carbon dioxide and hours of a fermentation with seven inputs",
)
"""Three objectives of a simulated process; the reference point is BoTorch's."""
